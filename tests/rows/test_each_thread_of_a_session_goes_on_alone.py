"""A thread has turns, calls, messages, a history and sums of its own. The session says what all of its threads do and wait for."""

from collections.abc import Callable

import pytest
from rows.stage import Stage, call, say

from models.database import ids
from models.errors import Conflict
from models.flow.begin.sessions import archive, archive_thread
from models.flow.carry_on.next_step import stop
from models.flow.run.history import history
from models.session.approval.decision import Decision
from models.session.event.of_session import StoredMessage
from models.session.locked import Locked
from models.session.thread.row import Thread
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

Two = tuple[str, str]
"""The ids of a session and of its second thread."""


@pytest.fixture
def two(stage: Stage) -> Two:
    """A session whose own thread and second thread each have a message to read."""
    session_id = stage.session()
    stage.message(session_id, "To the first.")

    def begin(locked: Locked) -> str:
        own = locked.thread
        child = Thread(
            session_id=own.session_id,
            id=ids.new("sthr"),
            workspace_id=own.workspace_id,
            parent_id=own.id,
            agent_id=own.agent_id,
            agent_version=own.agent_version,
            name="Child",
            usage={},
            created_at=locked.now,
            updated_at=locked.now,
        )
        return tell(locked.begin_thread(child))

    return session_id, stage.locked(session_id, begin)


def tell(locked: Locked) -> str:
    """Send a message to the thread at hand. Returns the thread's id."""
    locked.emit(StoredMessage(type="user.message", content=[say("To the second.")]), queued=True)
    locked.run_again()
    Turn.queue(locked, 1)
    return locked.thread.id


def thread(stage: Stage, two: Two) -> Thread:
    """The second thread as it is now."""
    return stage.get(Thread, *two)


def begin_child(stage: Stage, two: Two) -> Turn:
    """Claim the second thread's turn."""
    turn = stage.claim_turn(two[0], thread(stage, two).turn_id or "")
    assert turn, "the thread has a turn to claim"
    return turn


def ask_twice(stage: Stage, two: Two) -> tuple[ToolCall, ToolCall]:
    """Have each thread propose a call that people are asked about: first the session's own thread."""
    [first] = stage.reply(two[0], call(command="first"))
    [second] = stage.reply(two[0], call(command="second"), turn=begin_child(stage, two))
    return first, second


def on_child(stage: Stage, two: Two, verb: Callable[[Locked], None]) -> None:
    """Run a verb with the second thread at hand."""
    stage.locked(two[0], lambda locked: verb(locked.on(locked.threads[1])))


def idles(stage: Stage, session_id: str) -> list[object]:
    """The stop reasons of the session's idle events."""
    return [event.body["stop_reason"] for event in stage.events(session_id, "session.status_idle")]


def test_two_threads_have_a_turn_under_way_at_once(stage: Stage, two: Two) -> None:
    session_id, child_id = two
    first, second = stage.begin(session_id), begin_child(stage, two)
    assert (first.number, second.number) == (1, 1), "turns are numbered within their thread"
    assert (first.thread_id, second.thread_id) == (stage.thread(session_id).id, child_id)
    assert [[block["text"] for block in stage.prompt(turn)] for turn in (first, second)] == [["To the first."], ["To the second."]]
    assert stage.read(session_id).status == "running"
    assert len(stage.events(session_id, "session.status_running")) == 1, "the session began to run once"
    stage.check(session_id)


def test_each_thread_s_history_is_its_own(stage: Stage, two: Two) -> None:
    session_id, _ = two
    stage.reply(session_id, say("I am the first."))
    stage.reply(session_id, say("I am the second."), turn=begin_child(stage, two))
    own = [{"role": "user", "content": [say("To the first.")]}, {"role": "assistant", "content": [say("I am the first.")]}]
    assert stage.history(session_id) == own
    theirs = stage.locked(session_id, lambda locked: history(locked.db, locked.threads[1]))
    assert theirs == [
        {"role": "user", "content": [say("To the second.")]},
        {"role": "assistant", "content": [say("I am the second.")]},
    ]


def test_a_thread_waits_for_a_person_while_another_one_runs(stage: Stage, two: Two) -> None:
    session_id, _ = two
    [waiting] = stage.reply(session_id, call())
    assert stage.thread(session_id).status == "waiting"
    assert stage.thread(session_id).stop_reason == {"type": "requires_action", "event_ids": [waiting.id]}
    assert (stage.read(session_id).status, stage.read(session_id).waits_for) == ("running", "none")
    assert idles(stage, session_id) == [], "the session is not idle while a thread runs"
    stage.check(session_id)


def test_the_session_waits_with_the_calls_of_all_its_threads(stage: Stage, two: Two) -> None:
    session_id, _ = two
    first, second = ask_twice(stage, two)
    session = stage.read(session_id)
    assert (session.status, session.waits_for) == ("waiting", "person")
    assert idles(stage, session_id) == [{"type": "requires_action", "event_ids": [first.id, second.id]}]
    assert [approval.thread_id for approval in stage.approvals(session_id)] == [first.thread_id, second.thread_id]
    stage.check(session_id)


def test_a_decision_goes_to_the_thread_of_its_call(stage: Stage, two: Two) -> None:
    session_id, child_id = two
    first, second = ask_twice(stage, two)
    stage.confirm(session_id, second.id)
    assert (stage.thread(session_id).status, thread(stage, two).status) == ("waiting", "running")
    stage.run_call(second, "the second's result")
    turn = begin_child(stage, two)
    assert (turn.thread_id, turn.number) == (child_id, 2)
    stage.reply(session_id, say("Done."), turn=turn)
    waits = {"type": "requires_action", "event_ids": [first.id]}
    assert idles(stage, session_id)[-1] == waits, "the session still waits for the other thread"
    assert thread(stage, two).stop_reason == {"type": "end_turn"}
    stage.confirm(session_id, first.id, "deny")
    stage.reply(session_id, say("So be it."))
    assert idles(stage, session_id)[-1] == {"type": "end_turn"}
    assert stage.read(session_id).status == "idle"
    stage.check(session_id)


def test_two_decisions_at_once_each_move_their_thread(stage: Stage, two: Two) -> None:
    session_id, _ = two
    first, second = ask_twice(stage, two)
    stage.send(session_id, *(confirmation_of(approval.id) for approval in stage.approvals(session_id)))
    for each in (first, second):
        stage.run_call(each)
    assert [turn.number for turn in (stage.begin(session_id), begin_child(stage, two))] == [2, 2]
    stage.check(session_id)


def confirmation_of(approval_id: str) -> dict[str, object]:
    """A decision that allows the call of this approval."""
    return {"type": "user.tool_confirmation", "approval_id": approval_id, "decision": Decision("allow")}


def test_stopping_one_thread_leaves_the_other(stage: Stage, two: Two) -> None:
    session_id, _ = two
    first, second = ask_twice(stage, two)
    on_child(stage, two, stop)
    assert thread(stage, two).status == "idle"
    assert stage.get(ToolCall, second.id).status == "cancelled"
    assert stage.get(ToolCall, first.id).status == "asked"
    assert idles(stage, session_id)[-1] == {"type": "requires_action", "event_ids": [first.id]}
    stage.check(session_id)


def test_an_interrupt_names_one_thread_or_stops_all(stage: Stage, two: Two) -> None:
    session_id, child_id = two
    stage.begin(session_id)
    begin_child(stage, two)
    stage.send(session_id, {"type": "user.interrupt", "session_thread_id": child_id})
    assert (stage.thread(session_id).status, thread(stage, two).status) == ("running", "idle")
    assert stage.read(session_id).status == "running"
    stage.locked(session_id, lambda locked: tell(locked.on(locked.threads[1])))
    stage.send(session_id, {"type": "user.interrupt"})
    assert (stage.thread(session_id).status, thread(stage, two).status) == ("idle", "idle")
    assert len(idles(stage, session_id)) == 1, "the session says once that it is idle"
    stage.check(session_id)


def test_a_session_is_archived_with_all_its_threads(stage: Stage, two: Two) -> None:
    session_id, _ = two
    ask_twice(stage, two)
    stage.locked(session_id, archive)
    assert [stage.thread(session_id).status, thread(stage, two).status, stage.read(session_id).status] == ["terminated"] * 3
    stage.check(session_id)


def test_an_archived_thread_leaves_the_session(stage: Stage, two: Two) -> None:
    session_id, _ = two
    with pytest.raises(Conflict, match="running"):
        on_child(stage, two, archive_thread)
    first, _ = ask_twice(stage, two)
    on_child(stage, two, archive_thread)
    assert thread(stage, two).status == "terminated"
    assert stage.read(session_id).status == "waiting"
    stage.confirm(session_id, first.id, "deny")
    stage.reply(session_id, say("Done."))
    assert stage.read(session_id).status == "idle"
    stage.check(session_id)


def test_the_session_s_usage_is_the_sum_of_its_threads(stage: Stage, two: Two) -> None:
    session_id, _ = two
    stage.reply(session_id, say("One."))
    stage.reply(session_id, say("Two."), turn=begin_child(stage, two))
    sums = [row.usage["output_tokens"] for row in (stage.thread(session_id), thread(stage, two), stage.read(session_id))]
    assert sums == [5, 5, 10]
