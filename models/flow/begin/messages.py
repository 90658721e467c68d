"""The events that clients send to a session: messages, interrupts, decisions and results."""

from contextlib import nullcontext
from itertools import groupby
from typing import Any

from models.errors import Conflict, Invalid
from models.flow.begin import speakers
from models.flow.carry_on.next_step import carry_on, one_step, stop_all
from models.flow.decide.chat_words import take_word, tell_what_waits
from models.flow.decide.decisions import decide
from models.flow.decide.questions import with_keys
from models.session.approval import confirmation
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.event.log import archived_at
from models.session.event.of_session import StoredInterrupt, StoredMessage
from models.session.event.row import Event
from models.session.locked import Locked
from models.session.thread.row import MAX_UNREAD
from models.session.tool_call.echoes import echoes_of
from models.session.tool_call.events import OF_AGENTS, RESULTS, result
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult, Result
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.session.work import Work
from models.settings import providers


def receive(locked: Locked, events: list[dict[str, Any]]) -> list[Event]:
    """Take a client's events in order, all or none. Returns the stored events: for a repeated decision or result, the first one.

    `events` have valid shapes: those of `api.v1.events.requests`, except that a `user.tool_confirmation` carries its `Decision` as
    `decision`, and may name its approval by `approval_id` instead of its call by `tool_use_id`. Raises Conflict if the session is
    archived or a different decision came first, and Invalid with the field.
    """
    session = locked.session
    if session.status == "terminated":
        raise Conflict(f"Session {session.id} is archived and takes no more events.")
    before = session.last_seq
    taken: list[Event] = []
    for settles, some in groupby(enumerate(events), key=lambda pair: pair[1]["type"] in _SETTLING):
        with one_step(locked) if settles else nullcontext():
            for index, event in some:
                try:
                    taken.append(_TAKERS[event["type"]](locked, event))
                except Invalid as refusal:
                    raise refusal.renamed(f"events.{index}.{refusal.field}") from None
    stored_now = [event.seq for event in taken if event.seq > before]
    if stored_now:
        session.stream_behind(locked.actor, stored_now[-1])
    return taken


def _take_message(locked: Locked, event: dict[str, Any]) -> Event:
    session, thread = locked.session, locked.thread
    if decided := take_word(locked, event):
        return decided
    _check_readable(locked, event["content"])
    if thread.unread >= MAX_UNREAD:
        raise Conflict(f"{MAX_UNREAD} messages of session {session.id} wait to be read already; wait until it has gone on.")
    person = speakers.hear(locked, event.get("on_behalf_of"))
    message = StoredMessage(type="user.message", content=event["content"])
    if person:
        message["on_behalf_of"] = person
    row = locked.emit(message, queued=True)
    session.agent_messages = 0
    locked.note("message.received", row.id, **{"on_behalf_of": person} if person else {})
    if session.status == "idle":
        session.stream_positions = {}  # of the previous run
    if thread.status == "idle":
        locked.run_again()
        Turn.queue(locked, 1)
        Work.want(locked)
    else:
        tell_what_waits(locked)
    return row


def _check_readable(locked: Locked, content: list[dict[str, Any]]) -> None:
    """Raise Invalid, with the block, if the model of the session's agent cannot read a block of a message."""
    if all(block["type"] == "text" for block in content):
        return
    model, defaults = locked.session.configured(locked.db)["model"], locked.policies.get("model")
    entry = providers.serving(model["id"], providers.excluded(model, defaults))
    for index, block in enumerate(content):
        if entry and not entry.reads(block):
            message = f"provider {entry.name} cannot read {providers.block_in_words(block)}; send its content as text."
            raise Invalid(f"content.{index}", message)


def _take_interrupt(locked: Locked, event: dict[str, Any]) -> Event:
    session, thread_id = locked.session, event.get("session_thread_id")
    targets = [each for each in locked.each if thread_id in {None, each.thread.id}]
    if not targets:
        threads = ", ".join(thread.id for thread in locked.threads)
        raise Invalid(
            "session_thread_id", f"session {session.id} has no open thread {thread_id!r}; name one of {threads}, or leave it out."
        )
    interrupt = StoredInterrupt(type="user.interrupt")
    if thread_id:
        interrupt["session_thread_id"] = thread_id
    row = targets[0].emit(interrupt)
    locked.note("session.interrupted", session.id)
    stop_all(targets)
    return row


def _take_confirmation(locked: Locked, event: dict[str, Any]) -> Event:
    if "approval_id" in event:
        approval = locked.db.get(Approval, event["approval_id"])
        if approval is None or approval.session_id != locked.session.id:
            raise Invalid("approval_id", f"session {locked.session.id} has no approval {event['approval_id']!r}.")
        return _stored(locked, approval, decide(locked, approval, event["decision"]))
    call = _call(locked, "tool_use_id", event["tool_use_id"])
    approvals, _ = locked.db.read(Approval.about(call.id), CallInput.about(call.id))  # a decision reads the input, too
    approvals.sort(key=Approval.age)
    if not approvals:
        raise Invalid(
            "tool_use_id",
            f"{call.id} was not asked about: its permission was {call.permission!r}, and it is {call.status}.",
        )
    decision: Decision = event["decision"]
    approval = _decided_approval(approvals, decision)
    return _stored(locked, approval, decide(locked, approval, decision))


def _decided_approval(approvals: list[Approval], decision: Decision) -> Approval:
    """Return the one of a call's approvals that the decision is for.

    A repeated decision is for the approval that it decided first. It never decides a later approval of an unknown outcome, nor a
    question that it does not answer. A call whose grant was revoked is asked about again: its last approval is the pending one.
    """
    to_run = [approval for approval in approvals if approval.traits.asks_to_run]
    questions = [approval for approval in approvals if approval.questions is not None]
    if decision.answers is not None:
        for question in questions:
            if question.status != "pending" and question.decision == with_keys(question, decision).stored:
                return question
        return (questions or to_run or approvals)[-1]
    pending = [approval for approval in to_run if approval.status == "pending"]
    pending_questions = [approval for approval in questions if approval.status == "pending"]
    if decision.result == "deny":
        pending = pending or pending_questions
    repeated = [approval for approval in to_run + questions if approval.decision == decision.stored]
    return (pending or repeated or pending_questions or to_run or approvals)[-1]


def _take_result(locked: Locked, event: dict[str, Any]) -> Event:
    kind = next(k for k, (type_, _) in RESULTS.items() if type_ == event["type"])
    field = RESULTS[kind][1]
    call = _call(locked, field, event[field])
    if call.kind != kind:
        wants = "the server runs: it takes no result from a client"
        takes = wants if call.kind in {"builtin", "mcp", OF_AGENTS} else f"takes a {RESULTS[call.kind][0]}"
        raise Invalid(field, f"{call.id} is a call of {call.name!r}, which {takes}.")
    content, is_error = event.get("content") or [], bool(event.get("is_error"))
    locked = locked.at(call)
    if call.status == "with_client":
        masked_content = echoes_of(locked.db, call).value(content)
        row = locked.emit(result(call, masked_content, is_error=is_error))
        call.note(locked, "tool_call.answered", is_error=is_error)
        call.settle(locked, "done", Result(content, is_error=is_error, from_client=True))
        carry_on(locked)
        return row
    if call.status == "done" and CallResult.of(locked.db, call).content == content and call.is_error == is_error:
        of_call = "WHERE session_id = %(session)s AND type = %(type)s AND body ->> %(field)s = %(call)s"
        earlier = locked.db.first(Event, of_call, session=locked.session.id, type=event["type"], field=field, call=call.id)
        earlier = earlier or archived_at(locked.db, call.session_id, call.settled_at, lambda old: old.body.get(field) == call.id)
        assert earlier, "the result's event is stored with the result"
        return earlier
    reasons = {"asked": "it awaits approval", "unknown": "its outcome is unknown, and a person settles it"}
    reason = reasons.get(call.status, f"it is {call.status} already")
    raise Invalid(field, f"{call.id} takes no result now: {reason}.")


_SETTLING = {"user.tool_confirmation", "user.custom_tool_result", "user.tool_result"}
"""Types of events that settle calls. The session takes one step after several in a row."""
_TAKERS = {
    "user.message": _take_message,
    "user.interrupt": _take_interrupt,
    "user.tool_confirmation": _take_confirmation,
    "user.custom_tool_result": _take_result,
    "user.tool_result": _take_result,
}


def _call(locked: Locked, field: str, call_id: str) -> ToolCall:
    for each in locked.each:
        ToolCall.of_turn(each)  # one read of all calls of the turn, which the next events mostly name
    call = locked.db.get(ToolCall, call_id)
    if call is None or call.session_id != locked.session.id:
        raise Invalid(
            field,
            f"session {locked.session.id} has no tool call {call_id!r}; use the id of the call's event.",
        )
    return call


def _stored(locked: Locked, approval: Approval, event_id: str) -> Event:
    fresh = [event for event in locked.events if event.id == event_id]
    if fresh:
        return fresh[0]
    row = locked.db.first(Event, "WHERE session_id = %(session)s AND id = %(id)s", session=locked.session.id, id=event_id)
    row = row or archived_at(locked.db, locked.session.id, approval.decided_at, lambda old: old.id == event_id)
    return row or confirmation.unsent(approval)
