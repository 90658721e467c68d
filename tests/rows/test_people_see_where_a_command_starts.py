"""An approval of a shell command says at once where the command starts, as the last call left the files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_database import Clock
from rows.stage import Stage, call, say

from models.database import transactions
from models.database.transactions import transaction
from models.session.approval.evidence import BEFORE_FILES, Evidence
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from workers import tool as task

SRC = {"directory": "src", "branch": "main"}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The approvals for which a worker is hinted to look at the files."""
    sent: list[str] = []
    monkeypatch.setattr(transactions, "_send", transactions._send)  # monkeypatch restores it after the test
    transactions.on_commit(lambda outbox: sent.extend(hint.args[0] for hint in outbox.hints if hint.task == "tool.look"))
    return sent


def evidence(stage: Stage, approval: Approval) -> Evidence | None:
    with transaction(stage.workspace_id) as db:
        return db.get(Evidence, approval.id)


def shown(stage: Stage, session: str, **arguments: Any) -> dict[str, Any] | None:
    """Have the model propose a command. Returns the evidence of its approval."""
    stage.propose(session, call(**{"command": "ls", **arguments}))
    row = evidence(stage, stage.approvals(session)[-1])
    return row.body if row else None


def ran(stage: Stage, session: str, **outcome: Any) -> None:
    """Run a command that a person allowed, and end the turn."""
    tool_call = stage.propose(session)
    stage.confirm(session, tool_call.id)
    stage.finish_call(stage.begin_call(stage.get(ToolCall, tool_call.id)), **outcome)
    stage.reply(session, say("Done."))


def test_the_first_command_of_a_session_starts_in_its_directory(stage: Stage, looks: list[str]) -> None:
    assert shown(stage, stage.session()) == BEFORE_FILES
    assert not looks


def test_a_command_starts_where_the_last_call_ended(stage: Stage, looks: list[str]) -> None:
    session = stage.session()
    ran(stage, session, shell_start=SRC)
    assert shown(stage, session) == SRC
    assert not looks


@pytest.mark.parametrize("arguments", [{"working_directory": "src"}, {"restart": True}])
def test_a_worker_looks_for_a_command_that_says_itself_where_it_starts(
    stage: Stage, looks: list[str], arguments: dict[str, Any]
) -> None:
    session = stage.session()
    assert shown(stage, session, **arguments) is None
    assert looks == [stage.approvals(session)[-1].id]


def test_a_worker_looks_after_a_call_whose_end_nobody_saw(
    stage: Stage, looks: list[str], clock: Clock, setting: Callable[[str, str], None]
) -> None:
    setting("crash_attempts", "1")
    session = stage.session(bash="always_ask", write="always_allow")
    ran(stage, session, shell_start=SRC)
    stage.lose(stage.begin_call(stage.propose(session, call("write", file_path="a", content="b"))), clock)
    stage.reply(session, call())
    assert looks == [stage.approvals(session)[-1].id]


def test_the_later_look_is_compared_with_the_time_of_asking(stage: Stage) -> None:
    session = stage.session()
    ran(stage, session, shell_start=SRC)
    stage.propose(session)
    approval = stage.approvals(session)[-1]
    with transaction(stage.workspace_id) as db:
        Evidence.keep(db, approval.id, session, SRC | {"branch": "release"})
    row = evidence(stage, approval)
    assert row
    assert (row.first_body, row.body) == (SRC, SRC | {"branch": "release"})


def test_a_secret_of_the_command_is_masked_in_it(stage: Stage) -> None:
    session = stage.session()
    ran(stage, session, shell_start=SRC | {"branch": "hunter2hunter2"})
    row = shown(stage, session, command="login --password hunter2hunter2")
    assert row
    assert "hunter2" not in row["branch"]


def test_the_worker_that_ends_a_call_stores_where_the_next_command_starts(
    stage: Stage, tmp_path: Path, setting: Callable[[str, str], None]
) -> None:
    setting("workdir_root", str(tmp_path / "workdirs"))
    setting("shell", "bare")
    session = stage.session(bash="always_allow")
    head = "ref: refs/heads/main"
    tool_call = stage.propose(session, call(command=f"mkdir -p src/.git && echo '{head}' > src/.git/HEAD && cd src"))
    task.run(tool_call.id, session, stage.workspace_id)
    assert stage.read(session).shell_start == SRC
