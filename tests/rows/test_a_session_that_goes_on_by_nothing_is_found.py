"""A session whose rows contradict each other is found within a minute, and named with its fault. A healthy session never is."""

from collections.abc import Callable
from typing import Any

import pytest
from own_database import Cleaner, Clock
from rows.crew import Crew, send
from rows.stage import Stage, call, say

from models.database import failure
from models.operate.doctor import sessions
from models.session.tool_call.row import ToolCall
from workers.schedule import BEAT
from workers.sweeps import watching

Broken = Callable[[Stage, str], str]


@pytest.fixture
def statement(cleaner: Cleaner) -> Callable[..., None]:
    """Writes to the database as an administrator, as no verb would."""

    def write(sql: str, *values: Any) -> None:
        cleaner.db.execute(sql, values)  # type: ignore[call-overload]

    return write


def asked(stage: Stage) -> ToolCall:
    """A call that waits for a person."""
    return stage.propose(stage.session())


def running(stage: Stage) -> ToolCall:
    """A call that a worker holds."""
    return stage.begin_call(stage.propose(stage.session(bash="always_allow")))


def resting(stage: Stage) -> ToolCall:
    """A call of a run that has ended."""
    tool_call = asked(stage)
    stage.confirm(tool_call.session_id, tool_call.id, "deny")
    stage.reply(tool_call.session_id, {"type": "text", "text": "Then not."})
    return tool_call


def of_a_sub_agent(stage: Stage) -> ToolCall:
    """A call of a sub-agent that waits for a person, while its coordinator rests."""
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader"))
    crew.lead_replies(say("I wait."))
    return crew.replies(call())[0]


SETTLE = "UPDATE tool_call SET status = 'done', settled_at = now(), lease_until = NULL WHERE id = %s"
DENY = """
    WITH denial AS (UPDATE approval SET status = 'denied' WHERE tool_call_id = %s RETURNING tool_call_id)
    UPDATE tool_call SET status = 'denied' FROM denial WHERE id = tool_call_id
"""
CASES: dict[str, tuple[Callable[[Stage], ToolCall], str, str]] = {
    "runs without a lease": (running, SETTLE, "runs_without_work"),
    "decided without a turn": (
        asked,
        DENY,
        "waits_for_nobody",
    ),
    "waits without a pending approval": (asked, "DELETE FROM approval WHERE tool_call_id = %s", "asks_nobody"),
    "decided, and the call still waits": (asked, "UPDATE approval SET status = 'allowed' WHERE tool_call_id = %s", "asks_nobody"),
    "runs while a call waits": (
        asked,
        "UPDATE thread SET status = 'running' FROM tool_call WHERE tool_call.id = %s AND thread.id = thread_id",
        "works_while_it_waits",
    ),
    "rests with an open call": (
        running,
        "UPDATE thread SET status = 'idle' FROM tool_call WHERE tool_call.id = %s AND thread.id = thread_id",
        "rests_with_work",
    ),
    "rests with a message": (
        resting,
        "UPDATE thread SET unread = 1 FROM tool_call WHERE tool_call.id = %s AND thread.id = thread_id",
        "rests_with_messages",
    ),
    "says something else than its threads": (
        resting,
        "UPDATE session SET status = 'running' FROM tool_call WHERE tool_call.id = %s AND session.id = session_id",
        "differs_from_its_threads",
    ),
    "a sub-agent goes on without its coordinator": (
        of_a_sub_agent,
        """
        UPDATE thread SET status = 'terminated' FROM tool_call
        WHERE tool_call.id = %s AND thread.session_id = tool_call.session_id AND parent_id IS NULL
        """,
        "outlives_its_coordinator",
    ),
    "people are asked for a thread that is gone": (
        of_a_sub_agent,
        "UPDATE approval SET thread_id = 'sthr_gone' WHERE tool_call_id = %s",
        "asks_for_nobody",
    ),
    "a message between threads is read by nobody": (
        of_a_sub_agent,
        """
        UPDATE event SET turn_id = NULL FROM tool_call
        WHERE tool_call.id = %s AND event.session_id = tool_call.session_id AND event.type = 'agent.thread_message_received'
        """,
        "miscounts_messages",
    ),
}


@pytest.fixture(params=CASES)
def broken(request: pytest.FixtureRequest, stage: Stage, statement: Callable[..., None]) -> tuple[str, str]:
    """A broken session's id, and the name of its fault."""
    begin, change, fault = CASES[request.param]
    tool_call = begin(stage)
    assert sessions.faults([tool_call.session_id]) == [], "healthy before"
    statement(change, tool_call.id)
    return tool_call.session_id, fault


def test_it_is_found_among_the_sessions_that_acted(broken: tuple[str, str], caplog: pytest.LogCaptureFixture) -> None:
    session_id, fault = broken
    assert sessions.Look().run(10) >= 1
    assert f"{session_id} of " in caplog.text
    assert f"({fault})" in caplog.text


def test_the_sweep_looks_twice_a_minute() -> None:
    [entry] = [entry for entry in BEAT.values() if entry["task"] == watching.check_sessions.name]
    assert entry["schedule"] <= 30


def test_a_healthy_session_is_left_alone(stage: Stage) -> None:
    for begin in (asked, running, resting, of_a_sub_agent):
        begin(stage)
    stage.message(stage.session())
    stage.propose(stage.session(custom=("lookup",)), call("lookup", n=1))
    assert sessions.Look().run(10) == 0


def test_it_is_told_until_it_is_repaired(stage: Stage, statement: Callable[..., None], clock: Clock) -> None:
    tool_call = resting(stage)
    look = sessions.Look()
    statement("UPDATE session SET status = 'running' WHERE id = %s", tool_call.session_id)
    assert look.run(10) == 1
    assert sessions.ids_of_failures() == [tool_call.session_id]
    clock.advance(2 * sessions.LATE.total_seconds())
    assert look.run(10) == 1, "also though nothing acts there any more"
    statement("UPDATE session SET status = 'idle' WHERE id = %s", tool_call.session_id)
    clock.advance(failure.LONGEST_SECONDS)
    assert look.run(10) == 0
    assert sessions.ids_of_failures() == []


def test_all_sessions_can_be_looked_at(stage: Stage, statement: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "BATCH", 1)
    monkeypatch.setattr(sessions, "IDS", 2)
    ids = [resting(stage).session_id for _ in range(3)]
    statement("UPDATE session SET status = 'running' WHERE id = %s", ids[-1])
    faults = [fault for batch in sessions.every_session() for fault in sessions.faults(batch)]
    assert [fault.session_id for fault in faults] == [ids[-1]]
