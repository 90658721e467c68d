"""Which toolsets a worker has: installed packages' and the setting's. What would not go well is left out, with a sentence."""

import sys

import pytest
from click.testing import CliRunner
from written import House

from api.cli.main import main
from models.settings import settings
from workers.tools.python import child, running

GOOD = """
    {name} = Toolset("{name}")

    @{name}.tool(effect="read")
    def look() -> str:
        "Look. Closely."
        return "seen"
"""
TRACE = "\n    import pathlib\n    pathlib.Path({file!r}).touch()\n"
INSTEAD = "rename it, or run these tools as an MCP server on stdio, in a Python of their own (ASSENT_MCP_CONFIG)"


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "theirs"))
    monkeypatch.delenv("ASSENT_TOOLSETS", raising=False)
    yield House(tmp_path / "theirs", monkeypatch)
    running.end_idle()
    settings.cache_clear()


@pytest.fixture
def traced(tmp_path):
    """Code that leaves a trace when it is imported, and whether it has."""
    file = tmp_path / "imported"
    return TRACE.format(file=str(file)), file.exists


def good(name):
    return GOOD.format(name=name)


def test_without_any_there_is_none(house):
    assert running.describe() == ({}, [])


def test_one_of_the_setting_is_found(house):
    house.write("team.tools", good("desk"))
    house.name("team.tools:desk")
    found, problems = running.describe()
    assert problems == []
    assert [(entry["name"], entry["description"]) for entry in found["desk"]] == [("look", "Look. Closely.")]
    assert not any(name.startswith("team") for name in sys.modules)


def test_one_of_an_installed_package_is_found(house, context):
    house.write("team.tools", good("desk"))
    house.install("team-tools", "team.tools:desk", top="team")
    found, problems = running.describe()
    assert problems == []
    tool = running.toolset_tool("desk", found["desk"][0])
    assert tool.run(context(), {}).content == [{"type": "text", "text": "seen"}]


def test_one_that_is_named_twice_is_found_once(house):
    house.write("team.tools", good("desk"))
    house.install("team-tools", "team.tools:desk", top="team")
    house.name("team.tools:desk", "team.tools:desk")
    assert list(running.describe()[0]) == ["desk"]
    assert running.describe()[1] == []


def test_ours_are_found_by_the_setting(house):
    house.name("workers.toolsets.orders:orders")
    found, problems = running.describe()
    assert problems == []
    assert [entry["name"] for entry in found["orders"]] == ["find_orders", "get_order", "refund", "send_letter"]


@pytest.mark.parametrize("name", ["api", "deploy", "models", "workers"])
def test_a_package_with_a_module_of_our_names_is_refused_before_it_is_imported(house, traced, name):
    code, was_imported = traced
    house.write("team.tools", code + good("desk"))
    house.write(f"{name}.__init__", code)
    house.install("team-tools", "team.tools:desk")
    taken = f"the distribution team-tools has a module {name!r} at the top, which is a name of Assent's; {INSTEAD}"
    assert_refused(f"team.tools:desk (distribution team-tools 1.0): {taken}")
    assert not was_imported()


def test_so_is_one_whose_toolset_is_in_such_a_module(house, traced):
    code, was_imported = traced
    house.write("models.tools", code + good("desk"))
    house.install("team-tools", "models.tools:desk")
    assert_refused("models.tools:desk (distribution team-tools 1.0): the distribution team-tools has a module 'models'")
    assert not was_imported()


def test_so_is_one_that_needs_such_a_package(house, traced):
    code, was_imported = traced
    house.write("team.tools", code + good("desk"))
    house.write("models.__init__", code)
    house.install("team-core", "", top="models")
    house.install("team-tools", "team.tools:desk", top="team", requires="Team.Core>=1; python_version>'3'")
    assert_refused("the distribution team-core has a module 'models' at the top")
    assert not was_imported()


def test_so_is_one_that_is_linked_to_such_a_folder(house, traced, tmp_path):
    code, was_imported = traced
    linked = House(tmp_path / "linked", house.patch)
    linked.write("models.__init__", code)
    linked.write("team.tools", code + good("desk"))
    house.folder.mkdir()
    (house.folder / "team.pth").write_text(f"{linked.folder}\n")
    house.install("team-tools", "team.tools:desk")
    house.patch.syspath_prepend(str(house.folder))
    assert_refused("the distribution team-tools has a module 'models' at the top")
    assert not was_imported()


def test_so_is_a_module_of_the_setting_beside_such_a_one(house, traced):
    code, was_imported = traced
    house.write("team.tools", code + good("desk"))
    house.write("models", code)
    house.name("team.tools:desk")
    beside = f"beside it, in {house.folder}, is a module 'models', which is a name of Assent's; {INSTEAD}"
    assert_refused(f"team.tools:desk (ASSENT_TOOLSETS): {beside}")
    assert not was_imported()


def test_so_is_a_module_that_bears_one_of_our_names(house, traced):
    code, was_imported = traced
    house.write("models.tools", code + good("desk"))
    house.name("models.tools:desk")
    assert_refused("models.tools:desk (ASSENT_TOOLSETS): the name 'models' is Assent's, which has no module 'models.tools'")
    assert not was_imported()


def test_two_of_one_name_are_both_refused(house):
    house.write("one", good("desk"))
    house.write("two", good("desk"))
    house.write("three", good("shelf"))
    house.name("one:desk", "two:desk", "three:shelf")
    found, problems = running.describe()
    assert list(found) == ["shelf"]
    both = "one:desk (ASSENT_TOOLSETS) and two:desk (ASSENT_TOOLSETS)"
    assert problems == [f"{both}: both are called 'desk', and neither is used; rename one"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("import nowhere_at_all", "cannot be imported (ModuleNotFoundError: No module named 'nowhere_at_all')"),
        ("1/0", "cannot be imported (ZeroDivisionError: division by zero)"),
        ("import sys; sys.exit(3)", "cannot be imported (SystemExit: 3)"),
        ("import os; os._exit(3)", "its import ended the process (exit code 3)"),
        ("import ctypes; ctypes.string_at(0)", "its import ended the process (signal 11)"),
        ("import sys; print('why', file=sys.stderr); import os; os.abort()", "its import ended the process (signal 6) why"),
        ("desk = 3", "desk in bad is no Toolset but int; name the object that Toolset(...) made"),
        ("other = 3", "desk in bad is no Toolset but NoneType; name the object that Toolset(...) made"),
        ("desk = Toolset('desk')", "it declares no tool; put @desk.tool(effect=...) above a function"),
        ("desk = Toolset('Desk')", "cannot be imported (ValueError: toolset 'Desk': use up to 48 of a-z"),
        ("import time; time.sleep(60)", "its import takes longer than 0.5 s"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_one_that_cannot_be_used_is_told_and_the_others_work(house, monkeypatch, body, says):
    if "sleep" in body:
        monkeypatch.setattr(child, "START_SECONDS", 0.5)
        house.name("bad:desk")
    else:
        house.write("fine", good("shelf"))
        house.name("bad:desk", "fine:shelf")
    house.write("bad", body)
    found, problems = running.describe()
    assert list(found) == ([] if "sleep" in body else ["shelf"])
    assert len(problems) == 1
    assert problems[0].startswith(f"bad:desk (ASSENT_TOOLSETS): {says}")


def test_an_import_that_fails_is_told_with_its_place(house):
    file = house.write("bad", "x = 1\nx / 0\n")
    house.name("bad:desk")
    [problem] = running.describe()[1]
    assert problem.endswith(f"cannot be imported (ZeroDivisionError: division by zero) at {file}, line 3")


@pytest.mark.parametrize("spec", ["team", "team:", ":desk", "team.tools:desk()", "te-am:desk"])
def test_what_is_no_place_is_told(house, spec):
    house.name(spec)
    assert running.describe() == ({}, [f"{spec} (ASSENT_TOOLSETS): is no place of a toolset; write module:attribute"])


def test_a_module_of_ours_that_is_hidden_is_told(house):
    house.write("deploy", "")
    house.patch.delitem(sys.modules, "deploy", raising=False)
    told = running.describe()[1]
    hidden = f"the module 'deploy' of Assent is hidden by {house.folder / 'deploy.py'}; take its folder out of PYTHONPATH"
    assert told == [hidden]


def test_the_list_shows_what_is_there_and_what_is_not(house):
    house.write("fine", good("shelf"))
    house.name("bad:desk", "fine:shelf")
    done = CliRunner().invoke(main, ["tools", "list"])
    assert done.exit_code == 1
    assert "shelf  (assent:shelf)\n  look  reads, asked: Look\n" in done.output
    assert "builtin\n  bash  writes, at most once, asked: Run a command in bash" in done.output
    assert "not used: bad:desk (ASSENT_TOOLSETS): cannot be imported (ModuleNotFoundError: No module named 'bad')" in done.output


def assert_refused(sentence):
    found, problems = running.describe()
    assert found == {}
    assert any(sentence in problem for problem in problems), problems
