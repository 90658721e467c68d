"""Invariants between the threads of a session, of its rows at one moment."""

from collections import Counter
from typing import Protocol

from models.pure.states import SETTLED
from models.session.approval.row import Approval
from models.session.event.row import Event
from models.session.thread.row import Thread
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

SENT, RECEIVED = "agent.thread_message_sent", "agent.thread_message_received"


class Rows(Protocol):
    """The rows of a session, its events in their order."""

    @property
    def threads(self) -> list[Thread]: ...
    @property
    def turns(self) -> list[Turn]: ...
    @property
    def calls(self) -> list[ToolCall]: ...
    @property
    def approvals(self) -> list[Approval]: ...
    @property
    def events(self) -> list[Event]: ...


def no_message_is_lost_or_doubled(seen: Rows) -> None:
    """Each message that was sent was received once, and is read by one turn of its thread or waits there."""
    events = seen.events
    sent = [(e.seq + 1, e.thread_id, e.body["to_session_thread_id"], e.body["content"]) for e in events if e.type == SENT]
    received = [(e.seq, e.body["from_session_thread_id"], e.thread_id, e.body["content"]) for e in events if e.type == RECEIVED]
    assert sent == received, "each message that was sent is received at once, and no other"
    thread_of = {turn.id: turn.thread_id for turn in seen.turns}
    messages = [event for event in events if event.type in {RECEIVED, "user.message"}]
    assert all(thread_of[event.turn_id] == event.thread_id for event in messages if event.turn_id), "its own thread reads it"
    waiting = Counter(e.thread_id for e in messages if not e.turn_id and (e.type == RECEIVED or not e.processed_at))
    for thread in seen.threads:
        assert thread.status == "terminated" or thread.unread == waiting[thread.id], "a message that no turn read waits to be read"


def every_task_is_reported(seen: Rows) -> None:
    """A sub-agent that rests or has ended has written to its coordinator after each message that it got."""
    for thread in seen.threads:
        if thread.parent_id and thread.status in {"idle", "terminated"} and thread.turn_number:
            mail = [event for event in seen.events if event.thread_id == thread.id and event.type in {SENT, RECEIVED}]
            assert mail, "it reports"
            assert mail[-1].type == SENT, "it reports, or nobody hears that it ended"
            assert mail[-1].body["to_session_thread_id"] == thread.parent_id


def nothing_waits_for_a_thread_that_is_gone(seen: Rows) -> None:
    """Whatever is open belongs to a thread that goes on, and a thread ends with the one that began it."""
    live = {thread.id for thread in seen.threads if thread.status not in {"idle", "terminated"}}
    ended = {thread.id for thread in seen.threads if thread.status == "terminated"}
    assert all(each.id in ended for each in seen.threads if each.parent_id in ended), "a thread ends with the one that began it"
    assert {each.thread_id for each in seen.approvals if each.status == "pending"} <= live, "people are asked for a live thread"
    assert {call.thread_id for call in seen.calls if call.status not in SETTLED} <= live, "an open call is one of a live thread"


BETWEEN_THREADS = (no_message_is_lost_or_doubled, every_task_is_reported, nothing_waits_for_a_thread_that_is_gone)
