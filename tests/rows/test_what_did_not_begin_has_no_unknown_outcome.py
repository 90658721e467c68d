"""A call whose worker fails before the tool begins did not run: it is tried again, and nobody is asked what became of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from own_database import Clock
from rows.stage import Stage, say
from rows.tasks import work

from models.operate.failing import MOST_FAILURES
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.row import ToolCall
from workers import tool


def allowed_call(stage: Stage) -> ToolCall:
    """A call that a person allowed. Its tool is not idempotent."""
    session_id = stage.session(bash="always_ask", max_turns=9)
    tool_call = stage.propose(session_id)
    stage.confirm(session_id, tool_call.id)
    return tool_call


def run(stage: Stage, tool_call: ToolCall) -> ToolCall:
    """Do what a worker does with a hint of the call. Returns the call afterwards."""
    work(tool.run, tool_call.id, tool_call.session_id, stage.workspace_id)
    return stage.get(ToolCall, tool_call.id)


@pytest.fixture
def root(tmp_path: Path, setting: Callable[[str, str], None]) -> Path:
    """The folder of all sessions' files, which does not exist yet."""
    setting("workdir_root", str(tmp_path / "workdirs"))
    setting("shell", "bare")
    return tmp_path / "workdirs"


def test_a_call_whose_folder_cannot_be_created_is_tried_again_and_then_ends_with_an_error(
    stage: Stage, clock: Clock, root: Path
) -> None:
    tool_call = allowed_call(stage)
    root.mkdir(mode=0o700)
    (root / tool_call.session_id).write_text("in the way, as a full disk or a read-only mount is")
    for number in range(1, MOST_FAILURES + 1):
        assert stage.get(ToolCall, tool_call.id).status == "queued"
        run(stage, tool_call)
        assert stage.get(Attempt, tool_call.id, number).outcome == "not_begun"
        clock.advance(100)
    assert stage.get(ToolCall, tool_call.id).status == "refused"
    assert "was not run" in stage.result(tool_call)
    assert [approval.kind for approval in stage.approvals(tool_call.session_id)] == ["tool_call"], "nobody is asked"
    stage.reply(tool_call.session_id, say("So be it."))
    stage.check(tool_call.session_id)


def test_a_call_runs_once_the_disk_has_room_again(stage: Stage, clock: Clock, root: Path) -> None:
    tool_call = allowed_call(stage)
    root.mkdir(mode=0o700)
    in_the_way = root / tool_call.session_id
    in_the_way.write_text("")
    assert run(stage, tool_call).status == "queued"
    in_the_way.unlink()
    clock.advance(10)
    assert run(stage, tool_call).status == "done"
    assert stage.get(Attempt, tool_call.id, 2).outcome == "done"


def test_a_worker_whose_disk_does_not_exist_claims_nothing(stage: Stage, clock: Clock, root: Path) -> None:
    tool_call = allowed_call(stage)
    root.write_text("no folder")
    for _ in range(MOST_FAILURES):
        run(stage, tool_call)
        clock.advance(100)
    ended = stage.get(ToolCall, tool_call.id)
    assert (ended.status, ended.attempt) == ("refused", 0)
    stage.check(tool_call.session_id)


def test_an_interrupt_ends_a_call_that_did_not_begin(stage: Stage, clock: Clock, root: Path) -> None:
    tool_call = allowed_call(stage)
    root.mkdir(mode=0o700)
    (root / tool_call.session_id).write_text("")
    run(stage, tool_call)
    stage.send(tool_call.session_id, {"type": "user.interrupt"})
    assert stage.get(ToolCall, tool_call.id).status == "cancelled"
    stage.check(tool_call.session_id)
