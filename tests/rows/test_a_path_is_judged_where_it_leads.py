"""A rule about paths applies to the file that a path leads to through symbolic links."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rows.stage import Stage, call, entry, rules

from models.flow.judge.grants import release_waiting
from models.session.approval.row import Approval
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.workspace import toolset
from workers import tool as task
from workers.tools.sandbox import workdir

SECRET = "the key"


class Files:
    """A session with files, whose calls run in this process as in a tools worker."""

    def __init__(self, stage: Stage, session: str) -> None:
        self.stage, self.session = stage, session
        self.root = workdir.session_root(session) / "files"
        for folder in ("src", "secrets"):
            (self.root / folder).mkdir()
        (self.root / "secrets" / "key").write_text(SECRET)
        (self.root / "src" / "own").write_text("mine")
        self.link("src/l", "../secrets")

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link. An earlier one at the path is replaced."""
        (self.root / path).unlink(missing_ok=True)
        (self.root / path).symlink_to(target)

    def run(self, name: str, **fields: Any) -> ToolCall:
        """Have the model propose a call, and a worker take it up. Returns the call's row afterwards."""
        return self.again(self.stage.propose(self.session, call(name, **fields)))

    def again(self, tool_call: ToolCall) -> ToolCall:
        """Have a worker take up a call. Returns the call's row afterwards."""
        task.run(tool_call.id, self.session, self.stage.workspace_id)
        return self.stage.get(ToolCall, tool_call.id)

    @property
    def approval(self) -> Approval:
        """The last approval."""
        return self.stage.approvals(self.session)[-1]


@pytest.fixture
def session_with(stage: Stage, tmp_path: Path, setting: Callable[[str, str], None]) -> Callable[..., Files]:
    """Creates a session with these policies by tool."""
    setting("workdir_root", str(tmp_path / "workdirs"))
    return lambda **policies: Files(stage, stage.session(**policies))


READS = rules(("deny", "read(secrets/**)"), default="allow")
WRITES = rules(("allow", "write(src/**)"))


@pytest.mark.parametrize(
    "path", ["src/l/key", "./src//l/key", "src/chain/key", "src/direct", "{files}/src/l/key", "src/l/../l/key"]
)
def test_a_rule_that_denies_a_folder_holds_for_links_into_it(session_with: Callable[..., Files], path: str) -> None:
    files = session_with(read=READS)
    files.link("src/chain", "l")
    files.link("src/direct", str(files.root / "secrets" / "key"))
    tool_call = files.run("read", file_path=path.format(files=files.root))
    assert tool_call.status == "refused"
    assert "secrets/**" in files.stage.result(tool_call)
    assert SECRET not in json.dumps(files.stage.get(CallResult, tool_call.id).content)
    files.stage.check(files.session)


def test_a_link_that_no_rule_denies_is_followed(session_with: Callable[..., Files]) -> None:
    files = session_with(read=READS)
    files.link("src/fine", "own")
    assert files.stage.result(files.run("read", file_path="src/fine")) == "mine"


@pytest.mark.parametrize("new", ["new", "deep/er/new", "key"])
def test_a_write_that_a_link_leads_out_of_the_allowed_folder_is_asked_and_shows_where_it_leads(
    session_with: Callable[..., Files], new: str
) -> None:
    files = session_with(write=WRITES)
    tool_call = files.run("write", file_path=f"src/l/{new}", content="effect")
    assert tool_call.status == "asked"
    assert files.approval.leads_to == {"/file_path": f"secrets/{new}"}
    assert files.approval.prompt == f"Write file: src/l/{new} (a symbolic link leads to: secrets/{new})"
    assert (files.root / "secrets" / "key").read_text() == SECRET
    files.stage.decide(files.approval, result="allow")
    assert files.again(tool_call).status == "done"
    assert (files.root / "secrets" / new).read_text() == "effect"
    files.stage.check(files.session)


def test_a_decision_is_bound_to_where_the_path_led(session_with: Callable[..., Files]) -> None:
    """If the link leads elsewhere by then, people are asked again."""
    files = session_with(write=WRITES)
    (files.root / "other").mkdir()
    tool_call = files.run("write", file_path="src/l/new", content="effect")
    files.stage.decide(files.approval, result="allow")
    files.link("src/l", "../other")
    assert files.again(tool_call).status == "asked"
    assert files.approval.prompt == "Write file: src/l/new (a symbolic link leads to: other/new)"
    files.stage.decide(files.approval, result="allow")
    files.again(tool_call)
    assert [(files.root / folder / "new").exists() for folder in ("secrets", "other")] == [False, True]


def test_an_allow_of_the_path_as_written_does_not_cover_a_target_that_a_rule_asks_about(
    session_with: Callable[..., Files],
) -> None:
    files = session_with(write=rules(("ask", "write(secrets/**)"), ("ask", "write(src/**)")))
    tool_call = files.run("write", file_path="src/l/new", content="effect")
    assert files.approval.leads_to is None, "no worker had looked at the files"
    files.stage.decide(files.approval, result="allow")
    assert files.again(tool_call).status == "asked"
    assert files.approval.leads_to == {"/file_path": "secrets/new"}
    assert "secrets/**" in files.approval.rule


def test_nobody_can_allow_a_path_whose_target_a_rule_denies(session_with: Callable[..., Files]) -> None:
    files = session_with(write=rules(("deny", "write(secrets/**)")))
    tool_call = files.run("write", file_path="src/l/new", content="effect")
    files.stage.decide(files.approval, result="allow")
    assert files.again(tool_call).status == "refused"
    assert not (files.root / "secrets" / "new").exists()


def test_an_exact_grant_covers_no_other_file_by_a_link(session_with: Callable[..., Files]) -> None:
    files = session_with(read="always_ask")
    first = files.run("read", file_path="src/own")
    files.stage.decide(files.approval, result="allow", scope="session", match="exact")
    assert files.again(first).status == "done"
    files.link("src/own", "../secrets/key")
    [tool_call] = files.stage.reply(files.session, call("read", file_path="src/own"))
    assert tool_call.status == "queued"
    assert files.again(tool_call).status == "asked"
    assert files.approval.leads_to == {"/file_path": "secrets/key"}


@pytest.mark.parametrize(
    ("tool", "fields"), [("grep", {"pattern": "key", "path": "src/l"}), ("glob", {"pattern": "*", "path": "src/l"})]
)
def test_a_search_is_judged_by_the_target_of_its_folder(
    session_with: Callable[..., Files], tool: str, fields: dict[str, str]
) -> None:
    files = session_with(**{tool: rules(("allow", f"{tool}(src/**)"))})
    assert files.run(tool, **fields).status == "asked"
    assert files.approval.leads_to == {"/path": "secrets"}


def test_no_grant_releases_a_call_that_is_asked_because_of_its_path_s_target(session_with: Callable[..., Files]) -> None:
    files = session_with(write=WRITES)
    files.stage.message(files.session)
    linked, other = files.stage.reply(
        files.session, call("write", file_path="src/l/new", content="effect"), call("write", file_path="other", content="effect")
    )
    assert files.again(linked).status == "asked"
    asked = {approval.tool_call_id: approval for approval in files.stage.approvals(files.session)}
    files.stage.decide(asked[other.id], result="allow", scope="session", match="write(src/**)")
    assert release_waiting(files.stage.workspace_id, files.session) == 0
    assert files.again(linked).status == "asked"


def test_an_edit_is_judged_by_the_target_of_its_path(session_with: Callable[..., Files]) -> None:
    files = session_with(edit=rules(("allow", "edit(src/**)")))
    assert files.run("edit", file_path="src/l/key", old_string="the", new_string="my").status == "asked"
    assert (files.root / "secrets" / "key").read_text() == SECRET


@pytest.mark.parametrize("swap", ["src/l", "src"])
def test_a_link_made_between_judgement_and_effect_is_not_followed(
    session_with: Callable[..., Files], swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = session_with(write=WRITES)
    files.link("src/l", "inside")
    (files.root / "src" / "inside").mkdir()
    (files.root / "secrets" / "inside").mkdir()
    execute = task._execute

    def swapped(*words: Any) -> Any:
        if swap == "src":
            (files.root / "src").rename(files.root / "was")
            files.link("src", "secrets")
        else:
            (files.root / "src" / "inside").rmdir()
            files.link("src/inside", "../secrets")
        return execute(*words)

    monkeypatch.setattr(task, "_execute", swapped)
    tool_call = files.run("write", file_path="src/l/new", content="effect")
    assert "leads elsewhere than when this call was judged" in files.stage.result(tool_call)
    assert not list(files.root.rglob("new"))


def test_a_path_that_led_nowhere_when_it_was_judged_is_not_followed_later(
    session_with: Callable[..., Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = session_with(read=READS)
    files.link("src/l", "../../outside")
    execute = task._execute

    def swapped(*words: Any) -> Any:
        files.link("src/l", "../secrets")
        return execute(*words)

    monkeypatch.setattr(task, "_execute", swapped)
    tool_call = files.run("read", file_path="src/l/key")
    assert "outside the working directory" in files.stage.result(tool_call)


def test_path_arguments_of_a_toolset_s_tools_are_judged_by_their_targets(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
    toolset.announce({"shop": [entry("send", workdir=True, input_schema=schema)]})
    policy = rules(("allow", {"tool": "mcp__shop__send", "input": [{"path": "/path", "path_glob": "src/**"}]}))
    session = stage.session(servers={"shop": "assent:shop"}, shop=policy)
    tool_call = stage.propose(session, call("mcp__shop__send", path="src/l/key"))
    assert tool_call.status == "queued"
    assert stage.claim_call(tool_call, links={"src/l/key": "secrets/key"}) is None
    assert stage.approvals(session)[0].leads_to == {"/path": "secrets/key"}
