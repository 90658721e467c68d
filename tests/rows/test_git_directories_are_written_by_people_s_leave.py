"""Files of a git directory can make git run programs: writing there asks, and git commands ask from then on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rows.stage import Stage, call, rules

from models.database.transactions import transaction
from models.flow.judge.explanations import Example, explain_in
from models.flow.run.claims import ClaimedCall
from models.flow.run.rejudging import Files, Unresolved
from models.session.locked import try_lock
from models.session.row import Session
from models.session.thread.row import Thread, own_id
from models.session.tool_call.row import ToolCall
from workers import tool as task
from workers.tools.builtin import git_look
from workers.tools.sandbox import workdir

STATUS = call(command="git status")
CONFIG: dict[str, Any] = {"file_path": "src/.git/config", "content": "[core]\n\tfsmonitor = ./x\n"}
SHELL = rules(("allow", "bash(cd *)"), ("allow", "bash(git status *)"), ("allow", "bash(ls *)"), ("allow", "bash(cp *)"))


@pytest.fixture
def session(stage: Stage) -> str:
    return stage.session(bash=SHELL, write=rules(("allow", "write(src/**)")), edit="always_allow", read="always_allow")


def statuses(stage: Stage, session: str, *calls: dict[str, Any]) -> list[str]:
    stage.message(session)
    return [tool_call.status for tool_call in stage.reply(session, *calls)]


def test_a_write_into_a_git_directory_is_asked_even_if_a_rule_allows_it(stage: Stage, session: str) -> None:
    edit = {"file_path": ".git/hooks/pre-commit", "old_string": "a", "new_string": "b"}
    calls = [
        call("write", **CONFIG),
        call("edit", **edit),
        call(command="cp x src/.git/config"),
        call("write", file_path="src/a", content=""),
    ]
    stage.message(session)
    proposed = stage.reply(session, *calls)
    assert [each.status for each in proposed] == ["asked", "asked", "asked", "queued"]
    assert proposed[0].rule.startswith("always asked: src/.git/config is of a git directory")


def test_a_rule_that_denies_still_denies(stage: Stage) -> None:
    session = stage.session(bash=SHELL, write=rules(("deny", "write(**/.git/**)"), default="allow"))
    assert statuses(stage, session, call("write", **CONFIG)) == ["denied"]


def test_no_grant_of_the_tool_allows_such_a_write(stage: Stage) -> None:
    session = stage.session(bash=SHELL, write="always_allow")
    first = stage.propose(session, call("write", **CONFIG))
    stage.decide(stage.approvals(session)[0], result="allow", scope="session", match="tool")
    stage.run_call(first)
    [second] = stage.reply(session, call("write", **CONFIG | {"content": "other"}))
    assert second.status == "asked"


def test_a_shell_that_is_always_allowed_needs_no_such_guard(stage: Stage) -> None:
    session = stage.session(bash="always_allow", write="always_allow")
    assert statuses(stage, session, call("write", **CONFIG), STATUS) == ["queued", "queued"]


@pytest.mark.parametrize(
    "writes", [call("write", **CONFIG), call(command="echo x > .git/config"), call(command="cp x .git/config")]
)
def test_git_commands_are_asked_once_such_files_were_written(stage: Stage, session: str, writes: dict[str, Any]) -> None:
    stage.message(session)
    [before, written] = stage.reply(session, STATUS, writes)
    assert (before.status, written.status) == ("queued", "asked")
    stage.run_call(before)
    stage.confirm(session, written.id)
    stage.run_call(written)
    lines = ("git status", "ls && git status", "/usr/bin/git status", "ls")
    later = stage.reply(session, *(call(command=line) for line in lines))
    assert [tool_call.status for tool_call in later] == ["asked", "asked", "asked", "queued"]


def test_git_stays_allowed_if_the_write_was_denied(stage: Stage, session: str) -> None:
    written = stage.propose(session, call("write", **CONFIG))
    stage.confirm(session, written.id, "deny")
    assert stage.reply(session, STATUS)[0].status == "queued"


def test_a_write_of_a_self_hosted_worker_counts(stage: Stage) -> None:
    session = stage.session(bash=SHELL, write="always_ask", self_hosted=True)
    written = stage.propose(session, call("write", **CONFIG))
    stage.confirm(session, written.id)
    assert stage.read(session).git_written


def test_files_that_a_worker_finds_before_git_runs_count_as_written(stage: Stage, session: str) -> None:
    stage.message(session)
    [ordinary, status] = stage.reply(session, call(command="ls"), STATUS)
    assert stage.claim_call(ordinary, git_may_run=True)
    assert not stage.read(session).git_written
    stage.claim_call(status, git_may_run=True)
    assert stage.read(session).git_written


def test_a_git_command_is_claimed_only_after_the_worker_looked_at_the_files(stage: Stage, session: str) -> None:
    stage.message(session)
    [ordinary, status] = stage.reply(session, call(command="ls"), call(command="cd src && git status"))
    assert isinstance(stage.take(session, ordinary.id), ClaimedCall)
    unresolved = stage.take(session, status.id)
    assert unresolved == Unresolved(git_line="cd src && git status")
    assert stage.get(ToolCall, status.id).status == "queued"
    assert isinstance(stage.take(session, status.id, Files(git_may_run=False)), ClaimedCall)


def test_a_worker_looks_at_the_files_without_the_session_s_lock(
    stage: Stage, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: Callable[[str, str], None]
) -> None:
    """Reading a long configuration makes nobody wait."""
    setting("workdir_root", str(tmp_path / "workdirs"))
    tool_call = stage.propose(session, STATUS)
    git = workdir.session_root(session) / "files" / ".git"
    git.mkdir()
    (git / "config").write_text("[core]\n\tfsmonitor = ./x\n[alias]\n\tst = !./x\n")
    locks: list[bool] = []
    looks = git_look.may_run_programs

    def look(files: Path, command: str) -> bool:
        with transaction(stage.workspace_id) as db:
            locks.append(try_lock(db, session, stage.principal) is not None)
        return looks(files, command)

    monkeypatch.setattr(git_look, "may_run_programs", look)
    task.run(tool_call.id, session, stage.workspace_id)
    assert locks == [True]
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    assert stage.read(session).git_written


def test_explanations_give_the_same_verdicts(stage: Stage, session: str) -> None:
    def effects(*, git_written: bool) -> list[str]:
        with transaction(stage.workspace_id) as db:
            row = db.get_one(Session, session)
            row.git_written = git_written
            calls: list[tuple[str, dict[str, Any]]] = [("write", CONFIG), ("bash", {"command": "git status"})]
            thread = db.get_one(Thread, session, own_id(session))
            return [explain_in(db, row, thread, Example(tool, arguments)).verdict.effect for tool, arguments in calls]

    assert effects(git_written=False) == ["ask", "allow"]
    assert effects(git_written=True) == ["ask", "ask"]


def test_no_deadline_allows_such_a_write(stage: Stage, clock: Any) -> None:
    session = stage.session(bash=SHELL, write="always_allow", approval={"on_timeout": "allow", "timeout_seconds": 60})
    tool_call = stage.propose(session, call("write", **CONFIG))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, tool_call.id).status == "expired"


def test_an_allowed_call_is_asked_at_its_claim_if_git_would_run_a_program(stage: Stage, session: str) -> None:
    tool_call = stage.propose(session, STATUS)
    assert tool_call.status == "queued"
    assert stage.claim_call(tool_call, git_may_run=True) is None
    assert stage.get(ToolCall, tool_call.id).status == "asked"
    stage.confirm(session, tool_call.id)
    assert stage.claim_call(tool_call, git_may_run=True)


def test_a_queued_git_command_is_asked_once_a_write_began(stage: Stage, session: str) -> None:
    stage.message(session)
    [status, written] = stage.reply(session, STATUS, call("write", **CONFIG))
    stage.confirm(session, written.id)
    stage.run_call(written)
    assert stage.claim_call(status) is None
    assert stage.get(ToolCall, status.id).status == "asked"


@pytest.mark.parametrize("policy", ["always_allow", rules(("allow", "write(src/**)"))])
def test_a_link_into_a_git_directory_is_asked(stage: Stage, policy: Any) -> None:
    session = stage.session(bash=SHELL, write=policy)
    tool_call = stage.propose(session, call("write", file_path="src/l/x", content=""))
    assert tool_call.status == "queued"
    unresolved = stage.take(session, tool_call.id)
    assert isinstance(unresolved, Unresolved)
    assert stage.take(session, tool_call.id, Files({"src/l/x": ".git/x"})) is None
    assert stage.get(ToolCall, tool_call.id).status == "asked"
