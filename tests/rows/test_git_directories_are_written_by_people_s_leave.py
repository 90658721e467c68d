"""Git runs what the files of a repository say: a write there is asked, and git commands are asked from then on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rows.stage import Stage, call, rules

from models import flow
from models.database.transactions import transaction
from models.flow.explanations import explain
from models.session.session import Session
from models.session.tool_call import ToolCall
from models.settings import settings
from workers import tool as task
from workers.tools.builtin import git_look
from workers.tools.sandbox import workdir

STATUS = call(command="git status")
CONFIG: dict[str, Any] = {"file_path": "src/.git/config", "content": "[core]\n\tfsmonitor = ./x\n"}
HANDS = flow.Hands("worker", "stor_1", lambda _address: True)
SHELL = rules(("allow", "bash(cd *)"), ("allow", "bash(git status *)"), ("allow", "bash(ls *)"), ("allow", "bash(cp *)"))


@pytest.fixture
def session(stage: Stage) -> str:
    return stage.session(bash=SHELL, write=rules(("allow", "write(src/**)")), edit="always_allow", read="always_allow")


def statuses(stage: Stage, session: str, *calls: dict[str, Any]) -> list[str]:
    stage.message(session)
    return [found.status for found in stage.reply(session, *calls)]


def test_a_write_into_a_git_directory_is_asked_whatever_a_rule_allows(stage: Stage, session: str) -> None:
    edit = {"file_path": ".git/hooks/pre-commit", "old_string": "a", "new_string": "b"}
    calls = [
        call("write", **CONFIG),
        call("edit", **edit),
        call(command="cp x src/.git/config"),
        call("write", file_path="src/a", content=""),
    ]
    stage.message(session)
    found = stage.reply(session, *calls)
    assert [each.status for each in found] == ["asked", "asked", "asked", "queued"]
    assert found[0].rule.startswith("always asked: src/.git/config is of a git directory")


def test_a_rule_that_denies_still_denies(stage: Stage) -> None:
    session = stage.session(bash=SHELL, write=rules(("deny", "write(**/.git/**)"), default="allow"))
    assert statuses(stage, session, call("write", **CONFIG)) == ["denied"]


def test_no_grant_of_the_tool_allows_such_a_write(stage: Stage) -> None:
    session = stage.session(bash=SHELL, write="always_allow")
    stage.message(session)
    [first] = stage.reply(session, call("write", **CONFIG))
    stage.decide(stage.approvals(session)[0], result="allow", scope="session", match="tool")
    stage.run_call(first)
    [second] = stage.reply(session, call("write", **CONFIG | {"content": "other"}))
    assert second.status == "asked"


def test_where_the_shell_runs_everything_unasked_nothing_is_guarded(stage: Stage) -> None:
    session = stage.session(bash="always_allow", write="always_allow")
    assert statuses(stage, session, call("write", **CONFIG), STATUS) == ["queued", "queued"]


@pytest.mark.parametrize(
    "writes", [call("write", **CONFIG), call(command="echo x > .git/config"), call(command="cp x .git/config")]
)
def test_git_is_asked_once_such_files_were_written(stage: Stage, session: str, writes: dict[str, Any]) -> None:
    stage.message(session)
    [before, written] = stage.reply(session, STATUS, writes)
    assert (before.status, written.status) == ("queued", "asked")
    stage.run_call(before)
    stage.confirm(session, written.id)
    stage.run_call(written)
    lines = ("git status", "ls && git status", "/usr/bin/git status", "ls")
    later = stage.reply(session, *(call(command=line) for line in lines))
    assert [found.status for found in later] == ["asked", "asked", "asked", "queued"]


def test_git_is_allowed_still_where_the_write_was_denied(stage: Stage, session: str) -> None:
    stage.message(session)
    [written] = stage.reply(session, call("write", **CONFIG))
    stage.confirm(session, written.id, "deny")
    assert [found.status for found in stage.reply(session, STATUS)] == ["queued"]


def test_what_the_client_s_own_worker_writes_counts_as_well(stage: Stage) -> None:
    session = stage.session(bash=SHELL, write="always_ask", self_hosted=True)
    stage.message(session)
    [written] = stage.reply(session, call("write", **CONFIG))
    stage.confirm(session, written.id)
    assert stage.read(session).git_written


def test_what_a_worker_finds_before_git_runs_counts_as_written(stage: Stage, session: str) -> None:
    stage.message(session)
    [ordinary, status] = stage.reply(session, call(command="ls"), STATUS)
    assert stage.claim_call(ordinary, git_may_run=True)
    assert not stage.read(session).git_written
    stage.claim_call(status, git_may_run=True)
    assert stage.read(session).git_written


def test_a_claim_of_git_waits_for_the_worker_s_look_and_then_holds(stage: Stage, session: str) -> None:
    stage.message(session)
    [ordinary, status] = stage.reply(session, call(command="ls"), call(command="cd src && git status"))
    assert stage.locked(session, lambda db, locked: isinstance(flow.claim_call(db, locked, ordinary.id, HANDS), flow.Taken))
    unresolved = stage.locked(session, lambda db, locked: flow.claim_call(db, locked, status.id, HANDS))
    assert unresolved == flow.Unresolved(git_line="cd src && git status")
    assert stage.get(ToolCall, status.id).status == "queued"
    hands = replace(HANDS, git_may_run=False)
    assert stage.locked(session, lambda db, locked: isinstance(flow.claim_call(db, locked, status.id, hands), flow.Taken))


def test_a_worker_looks_at_the_files_while_the_session_is_free(
    stage: Stage, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration that is long to read is no reason for others to wait: the look is made in no transaction."""
    monkeypatch.setenv("ASSENT_WORKDIR_ROOT", str(tmp_path / "workdirs"))
    settings.cache_clear()
    stage.message(session)
    [found] = stage.reply(session, STATUS)
    git = workdir.session_root(session) / "files" / ".git"
    git.mkdir()
    (git / "config").write_text("[core]\n\tfsmonitor = ./x\n[alias]\n\tst = !./x\n")
    locks: list[bool] = []
    looks = git_look.may_run_programs

    def look(files: Path, command: str) -> bool:
        with transaction(stage.workspace_id) as db:
            locks.append(Session.try_lock(db, session) is not None)
        return looks(files, command)

    monkeypatch.setattr(git_look, "may_run_programs", look)
    task.run(found.id, session, stage.workspace_id)
    settings.cache_clear()
    assert locks == [True]
    assert stage.get(ToolCall, found.id).status == "asked"
    assert stage.read(session).git_written


def test_the_explanation_says_the_same(stage: Stage, session: str) -> None:
    def effects(*, git_written: bool) -> list[str]:
        with transaction(stage.workspace_id) as db:
            found = db.get_one(Session, session)
            found.git_written = git_written
            calls: list[tuple[str, dict[str, Any]]] = [("write", CONFIG), ("bash", {"command": "git status"})]
            return [explain(db, found.agent(db), tool, given, session=found).verdict.effect for tool, given in calls]

    assert effects(git_written=False) == ["ask", "allow"]
    assert effects(git_written=True) == ["ask", "ask"]


def test_no_deadline_allows_such_a_write(stage: Stage, clock: Any) -> None:
    session = stage.session(bash=SHELL, write="always_allow", approval={"on_timeout": "allow", "timeout_seconds": 60})
    stage.message(session)
    [found] = stage.reply(session, call("write", **CONFIG))
    clock.advance(61)
    stage.expire(session)
    assert stage.get(ToolCall, found.id).status == "expired"


def test_a_call_that_was_allowed_is_asked_at_its_claim_if_git_would_run_a_program(stage: Stage, session: str) -> None:
    stage.message(session)
    [found] = stage.reply(session, STATUS)
    assert found.status == "queued"
    assert stage.claim_call(found, git_may_run=True) is None
    assert stage.get(ToolCall, found.id).status == "asked"
    stage.confirm(session, found.id)
    assert stage.claim_call(found, git_may_run=True)


def test_a_queued_call_of_git_is_asked_once_a_write_began(stage: Stage, session: str) -> None:
    stage.message(session)
    [status, written] = stage.reply(session, STATUS, call("write", **CONFIG))
    stage.confirm(session, written.id)
    stage.run_call(written)
    assert stage.claim_call(status) is None
    assert stage.get(ToolCall, status.id).status == "asked"


@pytest.mark.parametrize("policy", ["always_allow", rules(("allow", "write(src/**)"))])
def test_a_link_into_a_git_directory_is_asked(stage: Stage, policy: Any) -> None:
    session = stage.session(bash=SHELL, write=policy)
    stage.message(session)
    [found] = stage.reply(session, call("write", file_path="src/l/x", content=""))
    assert found.status == "queued"
    unresolved = stage.locked(session, lambda db, locked: flow.claim_call(db, locked, found.id, HANDS))
    assert isinstance(unresolved, flow.Unresolved)
    hands = replace(HANDS, places={"src/l/x": ".git/x"})
    assert stage.locked(session, lambda db, locked: flow.claim_call(db, locked, found.id, hands)) is None
    assert stage.get(ToolCall, found.id).status == "asked"
