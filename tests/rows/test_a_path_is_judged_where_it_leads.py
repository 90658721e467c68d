"""A rule about paths holds for the file that a path leads to, whatever symbolic links are in between."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rows.stage import Stage, call, entry, rules

from models import flow
from models.session.approval import Approval
from models.session.call_result import CallResult
from models.session.tool_call import ToolCall
from models.settings import settings
from models.workspace import toolset
from workers import tool as task
from workers.tools.builtin import paths
from workers.tools.sandbox import workdir

SECRET = "the key"


class House:
    """A session with files, whose calls run in this process as in a tools worker."""

    def __init__(self, stage: Stage, session: str) -> None:
        self.stage, self.session = stage, session
        self.files = workdir.session_root(session) / "files"
        for folder in ("src", "secrets"):
            (self.files / folder).mkdir()
        (self.files / "secrets" / "key").write_text(SECRET)
        (self.files / "src" / "own").write_text("mine")
        self.link("src/l", "../secrets")

    def link(self, path: str, target: str) -> None:
        """Make a link, in the place of another if there is one."""
        (self.files / path).unlink(missing_ok=True)
        (self.files / path).symlink_to(target)

    def run(self, name: str, **fields: Any) -> ToolCall:
        """The call's row once a worker was told of it."""
        self.stage.message(self.session)
        [found] = self.stage.reply(self.session, call(name, **fields))
        return self.again(found)

    def again(self, found: ToolCall) -> ToolCall:
        """The call's row after a worker was told of it once more."""
        task.run(found.id, self.session, self.stage.workspace_id)
        return self.stage.get(ToolCall, found.id)

    @property
    def asked(self) -> Approval:
        """The last approval."""
        return self.stage.approvals(self.session)[-1]


@pytest.fixture
def house(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., House]]:
    """Makes a session with policies by tool."""
    monkeypatch.setenv("ASSENT_WORKDIR_ROOT", str(tmp_path / "workdirs"))
    settings.cache_clear()
    yield lambda **policies: House(stage, stage.session(**policies))
    settings.cache_clear()


READS = rules(("deny", "read(secrets/**)"), default="allow")
WRITES = rules(("allow", "write(src/**)"))


@pytest.mark.parametrize(
    "path", ["src/l/key", "./src//l/key", "src/chain/key", "src/direct", "{files}/src/l/key", "src/l/../l/key"]
)
def test_a_rule_that_denies_a_folder_holds_for_links_into_it(house: Callable[..., House], path: str) -> None:
    one = house(read=READS)
    one.link("src/chain", "l")
    one.link("src/direct", str(one.files / "secrets" / "key"))
    found = one.run("read", file_path=path.format(files=one.files))
    assert found.status == "refused"
    assert "secrets/**" in one.stage.result(found)
    assert SECRET not in json.dumps(one.stage.get(CallResult, found.id).content)
    one.stage.check(one.session)


def test_what_the_rule_is_not_about_runs_and_says_so_by_the_path_as_it_was_written(house: Callable[..., House]) -> None:
    one = house(read=READS)
    one.link("src/fine", "own")
    assert one.stage.result(one.run("read", file_path="src/fine")) == "mine"


@pytest.mark.parametrize("new", ["new", "deep/er/new", "key"])
def test_a_write_that_a_link_leads_out_of_the_allowed_folder_is_asked_and_shows_where_it_leads(
    house: Callable[..., House], new: str
) -> None:
    one = house(write=WRITES)
    found = one.run("write", file_path=f"src/l/{new}", content="effect")
    assert found.status == "asked"
    assert one.asked.leads_to == {"/file_path": f"secrets/{new}"}
    assert one.asked.prompt == f"Write file: src/l/{new} (a symbolic link leads to: secrets/{new})"
    assert (one.files / "secrets" / "key").read_text() == SECRET
    one.stage.decide(one.asked, result="allow")
    assert one.again(found).status == "done"
    assert (one.files / "secrets" / new).read_text() == "effect"
    one.stage.check(one.session)


def test_a_decision_is_bound_to_where_the_path_led(house: Callable[..., House]) -> None:
    """A link that leads elsewhere by then is asked about once more, not followed."""
    one = house(write=WRITES)
    (one.files / "other").mkdir()
    found = one.run("write", file_path="src/l/new", content="effect")
    one.stage.decide(one.asked, result="allow")
    one.link("src/l", "../other")
    assert one.again(found).status == "asked"
    assert one.asked.prompt == "Write file: src/l/new (a symbolic link leads to: other/new)"
    one.stage.decide(one.asked, result="allow")
    one.again(found)
    assert [(one.files / folder / "new").exists() for folder in ("secrets", "other")] == [False, True]


def test_a_person_who_allowed_the_path_as_written_is_asked_about_where_a_rule_asks_for(house: Callable[..., House]) -> None:
    one = house(write=rules(("ask", "write(secrets/**)"), ("ask", "write(src/**)")))
    found = one.run("write", file_path="src/l/new", content="effect")
    assert one.asked.leads_to is None, "no worker had looked at the files"
    one.stage.decide(one.asked, result="allow")
    assert one.again(found).status == "asked"
    assert one.asked.leads_to == {"/file_path": "secrets/new"}
    assert "secrets/**" in one.asked.rule


def test_nobody_can_allow_what_a_rule_denies_where_the_path_leads(house: Callable[..., House]) -> None:
    one = house(write=rules(("deny", "write(secrets/**)")))
    found = one.run("write", file_path="src/l/new", content="effect")
    one.stage.decide(one.asked, result="allow")
    assert one.again(found).status == "refused"
    assert not (one.files / "secrets" / "new").exists()


def test_an_exact_grant_covers_no_other_file_by_a_link(house: Callable[..., House]) -> None:
    one = house(read="always_ask")
    first = one.run("read", file_path="src/own")
    one.stage.decide(one.asked, result="allow", scope="session", match="exact")
    assert one.again(first).status == "done"
    one.link("src/own", "../secrets/key")
    [found] = one.stage.reply(one.session, call("read", file_path="src/own"))
    assert found.status == "queued"
    assert one.again(found).status == "asked"
    assert one.asked.leads_to == {"/file_path": "secrets/key"}


@pytest.mark.parametrize(
    ("tool", "fields"), [("grep", {"pattern": "key", "path": "src/l"}), ("glob", {"pattern": "*", "path": "src/l"})]
)
def test_a_search_begins_where_its_folder_leads(house: Callable[..., House], tool: str, fields: dict[str, str]) -> None:
    one = house(**{tool: rules(("allow", f"{tool}(src/**)"))})
    assert one.run(tool, **fields).status == "asked"
    assert one.asked.leads_to == {"/path": "secrets"}


def test_no_grant_releases_what_is_asked_for_where_its_path_leads(house: Callable[..., House]) -> None:
    one = house(write=WRITES)
    one.stage.message(one.session)
    linked, other = one.stage.reply(
        one.session, call("write", file_path="src/l/new", content="effect"), call("write", file_path="other", content="effect")
    )
    assert one.again(linked).status == "asked"
    asked = {approval.tool_call_id: approval for approval in one.stage.approvals(one.session)}
    one.stage.decide(asked[other.id], result="allow", scope="session", match="write(src/**)")
    assert flow.release_waiting(one.stage.workspace_id, one.session) == 0
    assert one.again(linked).status == "asked"


def test_an_edit_is_judged_where_it_leads(house: Callable[..., House]) -> None:
    one = house(edit=rules(("allow", "edit(src/**)")))
    assert one.run("edit", file_path="src/l/key", old_string="the", new_string="my").status == "asked"
    assert (one.files / "secrets" / "key").read_text() == SECRET


@pytest.mark.parametrize("swap", ["src/l", "src"])
def test_a_link_that_is_made_between_the_judgement_and_the_effect_is_not_followed(
    house: Callable[..., House], swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = house(write=WRITES)
    one.link("src/l", "inside")
    (one.files / "src" / "inside").mkdir()
    (one.files / "secrets" / "inside").mkdir()
    execute = task._execute

    def swapped(*words: Any) -> Any:
        if swap == "src":
            (one.files / "src").rename(one.files / "was")
            one.link("src", "secrets")
        else:
            (one.files / "src" / "inside").rmdir()
            one.link("src/inside", "../secrets")
        return execute(*words)

    monkeypatch.setattr(task, "_execute", swapped)
    found = one.run("write", file_path="src/l/new", content="effect")
    assert "leads elsewhere than when this call was judged" in one.stage.result(found)
    assert not list(one.files.rglob("new"))


def test_a_path_that_led_nowhere_when_it_was_judged_is_not_followed_later(
    house: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = house(read=READS)
    one.link("src/l", "../../outside")
    execute = task._execute

    def swapped(*words: Any) -> Any:
        one.link("src/l", "../secrets")
        return execute(*words)

    monkeypatch.setattr(task, "_execute", swapped)
    found = one.run("read", file_path="src/l/key")
    assert "outside the working directory" in one.stage.result(found)


def test_paths_are_followed_only_where_rules_look_at_them(house: Callable[..., House], monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> str:
        raise AssertionError("a path is followed")

    one = house(read="always_allow")
    monkeypatch.setattr(paths, "resolve", never)
    assert one.stage.result(one.run("read", file_path="src/own")) == "mine"


def test_arguments_of_a_toolset_s_tools_are_judged_where_they_lead(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
    toolset.announce({"shop": [entry("send", workdir=True, input_schema=schema)]})
    policy = rules(("allow", {"tool": "mcp__shop__send", "input": [{"path": "/path", "path_glob": "src/**"}]}))
    session = stage.session(servers={"shop": "assent:shop"}, shop=policy)
    stage.message(session)
    [found] = stage.reply(session, call("mcp__shop__send", path="src/l/key"))
    assert found.status == "queued"
    assert stage.claim_call(found, links={"src/l/key": "secrets/key"}) is None
    assert stage.approvals(session)[0].leads_to == {"/path": "secrets/key"}
