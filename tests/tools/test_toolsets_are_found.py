"""A worker finds the toolsets of installed packages and of the setting. It leaves out unusable ones and says why."""

import sys
from pathlib import Path

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


def good(name):
    return GOOD.format(name=name)


def test_without_names_no_toolset_is_found(house):
    assert running.describe() == ({}, [])


def test_a_toolset_named_in_the_setting_is_found(house):
    house.write("team.tools", good("desk"))
    house.name("team.tools:desk")
    toolsets, problems = running.describe()
    assert problems == []
    assert [(entry["name"], entry["description"]) for entry in toolsets["desk"]] == [("look", "Look. Closely.")]
    assert not any(name.startswith("team") for name in sys.modules)


def test_a_toolset_of_an_installed_package_is_found(house, context):
    house.write("team.tools", good("desk"))
    house.install("team-tools", "team.tools:desk", top="team")
    assert look(context).content == [{"type": "text", "text": "seen"}]


def test_a_toolset_that_is_named_twice_is_found_once(house):
    house.write("team.tools", good("desk"))
    house.install("team-tools", "team.tools:desk", top="team")
    house.name("team.tools:desk", "team.tools:desk")
    entries, problems = running.describe()
    assert (list(entries), problems) == (["desk"], [])


def test_the_example_is_found_by_the_setting(house):
    house.name("examples.orders:orders")
    toolsets, problems = running.describe()
    assert problems == []
    assert [entry["name"] for entry in toolsets["orders"]] == ["find_orders", "get_order", "refund", "send_letter"]


LIKE_OURS = """
    from {name}.core import WORDS
    desk = Toolset("desk")

    @desk.tool(effect="read")
    def look() -> str:
        "Look."
        return WORDS
"""
LOADED = """
    import sys
    desk = Toolset("desk")

    @desk.tool(effect="read")
    def loaded() -> list[str]:
        "The modules of Assent in this process."
        files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
        return sorted(name for name, file in files.items() if file.startswith("HOME") and "site-packages" not in file)
"""


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A team's folder that is on the module path of toolsets' processes alone."""
    monkeypatch.delenv("ASSENT_TOOLSETS", raising=False)
    monkeypatch.setenv("ASSENT_TOOLSET_PATH", str(tmp_path / "theirs"))
    yield House(tmp_path / "theirs", monkeypatch)
    running.end_idle()
    settings.cache_clear()


def look(context):
    """Return the result of the one tool of the toolset `desk`, called as a worker does in the process that listed it."""
    toolsets, problems = running.describe(keep=True)
    assert problems == []
    return running.toolset_tool("desk", toolsets["desk"][0]).run(context(), {})


OURS = ("api", "deploy", "models", "workers")
LIKE_ALL_OURS = (
    "".join(f"    import {name}.core\n" for name in OURS)
    + """
    desk = Toolset("desk")

    @desk.tool(effect="read")
    def look() -> str:
        "Look."
        return " ".join([api.core.WORDS, deploy.core.WORDS, models.core.WORDS, workers.core.WORDS])
"""
)


@pytest.mark.parametrize("packaged", [True, False], ids=["package", "folder-without-init"])
def test_a_team_s_packages_may_have_the_names_of_ours(beside, context, packaged):
    for name in OURS:
        if packaged:
            beside.write(f"{name}.__init__", "")
        beside.write(f"{name}.core", "WORDS = __name__")
    beside.write("workers.tools", LIKE_ALL_OURS)
    beside.name("workers.tools:desk")
    assert look(context).content == [{"type": "text", "text": "api.core deploy.core models.core workers.core"}]


def test_an_installed_package_may_have_modules_with_the_names_of_ours(house, context):
    for name in OURS:
        house.write(f"{name}.core", "WORDS = __name__")
    house.write("team.tools", LIKE_ALL_OURS)
    house.install("team-tools", "team.tools:desk")
    assert look(context).content == [{"type": "text", "text": "api.core deploy.core models.core workers.core"}]


def test_an_installed_package_is_also_found_in_the_folder_of_toolsets(beside, context):
    beside.write("models.core", "WORDS = 'theirs'")
    beside.write("models.tools", LIKE_OURS.format(name="models"))
    beside.install("team-tools", "models.tools:desk")
    assert look(context).content == [{"type": "text", "text": "theirs"}]


def test_a_toolsets_process_loads_only_assent_and_private_modules_of_ours(beside, context):
    beside.write("models.tools", LOADED.replace("HOME", str(Path.cwd())))
    beside.name("models.tools:desk")
    loaded = look(context).structured["result"]
    private = [name for name in loaded if name.startswith("_assent_runner")]
    assert private
    assert set(loaded) - set(private) - {"__mp_main__"} == {"__main__", "assent"}  # multiprocessing names __main__ twice


def test_a_toolset_cannot_import_our_modules(beside):
    beside.write("tools", "import workers.tools")
    beside.name("tools:desk")
    assert running.describe()[1][0].startswith(
        "tools:desk (ASSENT_TOOLSETS): cannot be imported (ModuleNotFoundError: No module named 'workers') at"
    )


def test_two_toolsets_of_one_name_are_both_refused(house):
    house.write("one", good("desk"))
    house.write("two", good("desk"))
    house.write("three", good("shelf"))
    house.name("one:desk", "two:desk", "three:shelf")
    toolsets, problems = running.describe()
    assert list(toolsets) == ["shelf"]
    both = "one:desk (ASSENT_TOOLSETS) and two:desk (ASSENT_TOOLSETS)"
    assert problems == [f"{both}: both are called 'desk', and neither is used; rename one"]


UNUSABLE = {
    "import nowhere_at_all": "cannot be imported (ModuleNotFoundError: No module named 'nowhere_at_all')",
    "1/0": "cannot be imported (ZeroDivisionError: division by zero) at {file}, line 2",
    "import sys; sys.exit(3)": "cannot be imported (SystemExit: 3)",
    "import sys; print('why', file=sys.stderr); import os; os._exit(3)": "its import ended the process (exit code 3) why",
    "import ctypes; ctypes.string_at(0)": "its import ended the process (signal 11)",
    "desk = 3": "desk in {module} is not a Toolset but int; name the object that Toolset(...) made",
    "other = 3": "desk in {module} is not a Toolset but NoneType; name the object that Toolset(...) made",
    "desk = Toolset('desk')": "it declares no tool; put @desk.tool(effect=...) above a function",
    "desk = Toolset('Desk')": "cannot be imported (ValueError: toolset 'Desk': use up to 48 of a-z",
}


def test_a_toolset_that_cannot_be_used_is_a_problem_and_the_others_work(house):
    sentences = []
    for number, (body, sentence) in enumerate(UNUSABLE.items()):
        module = f"bad{number}"
        file = house.write(module, body)
        sentences.append(f"{module}:desk (ASSENT_TOOLSETS): {sentence.format(module=module, file=file)}")
    house.write("fine", good("shelf"))
    house.name(*(f"bad{number}:desk" for number in range(len(UNUSABLE))), "fine:shelf")
    entries, problems = running.describe()
    assert list(entries) == ["shelf"]
    assert len(problems) == len(sentences)
    for problem, sentence in zip(problems, sentences, strict=True):
        assert problem.startswith(sentence)


def test_a_toolset_whose_import_takes_too_long_is_a_problem(house, monkeypatch):
    monkeypatch.setattr(child, "START_SECONDS", 0.5)
    house.write("bad", "import time; time.sleep(60)")
    house.name("bad:desk")
    assert running.describe() == ({}, ["bad:desk (ASSENT_TOOLSETS): its import took longer than 0.5 s"])


def test_a_name_that_is_not_module_and_attribute_is_a_problem(house):
    specs = ("team", "team:", ":desk", "team.tools:desk()", "te-am:desk")
    house.name(*specs)
    fault = "is not a place of a toolset; write module:attribute or module:attribute@PYTHON"
    problems = [f"{spec} (ASSENT_TOOLSETS): {fault}" for spec in specs]
    assert running.describe() == ({}, problems)


def test_the_command_lists_usable_and_unusable_toolsets(house):
    house.write("fine", good("shelf"))
    house.name("bad:desk", "fine:shelf")
    result = CliRunner().invoke(main, ["tools", "list"])
    assert result.exit_code == 1
    assert "shelf  (assent:shelf)\n  look  reads, asked: Look\n" in result.output
    assert "builtin\n  bash  writes, at most once, asked: Run a command in bash" in result.output
    assert "not used: bad:desk (ASSENT_TOOLSETS): cannot be imported (ModuleNotFoundError: No module named 'bad')" in result.output
