"""Messages, interrupts, archive: what starts a run and what ends it from outside."""

from typing import Any

from models.audit import acts
from models.audit.principal import Principal
from models.database import clock, ids
from models.database.rows import Db
from models.errors import Conflict, Invalid
from models.flow import speakers
from models.flow.chat_words import take_word
from models.flow.decisions import decide
from models.flow.hosted_work import retire_work
from models.flow.next_step import carry_on, stop
from models.flow.questions import named
from models.outbox.delivery import Caused, Delivery
from models.session import confirmation
from models.session.approval import Approval
from models.session.attempt import Attempt
from models.session.call_events import RESULTS
from models.session.call_result import CallResult
from models.session.decision import Decision
from models.session.event import Event
from models.session.evidence import Evidence
from models.session.grant import Grant
from models.session.session import NO_USAGE, Session
from models.session.stored_result import StoredResult
from models.session.tool_call import ToolCall
from models.session.turn import Turn
from models.session.vote import Vote
from models.session.work import Work
from models.workspace.agent import AgentVersion

DECISION = (
    *("result", "deny_message", "interrupt", "updated_input", "respond", "answers"),
    *("scope", "match", "expires_in_seconds", "max_uses", "expected_input_sha256"),
)
"""The fields of a `user.tool_confirmation` that decide."""

MAX_UNREAD = 100
"""Messages that may wait in one session: the next turn reads them all."""


def create(
    db: Db,
    principal: Principal,
    *,
    version: AgentVersion,
    overrides: dict[str, Any] | None = None,
    environment_id: str,
    title: str | None,
    metadata: dict[str, str],
    max_turns: int,
    self_hosted: bool = False,
    chat_approvals: bool = False,
    on_ask: str = "inbox",
    on_behalf_of: str | None = None,
) -> Session:
    """A new, idle session of one version of an agent, some of whose fields it may have otherwise.

    `on_behalf_of` is the person for whom an API key acts. Raises Invalid if nobody is named and the agent's calls need four eyes.
    """
    now = clock.now(db)
    speaker = speakers.named(db, principal, on_behalf_of)
    session = Session(
        id=ids.new("sesn"),
        workspace_id=principal.workspace_id,
        agent_id=version.agent_id,
        agent_version=version.version,
        overrides=overrides or None,
        environment_id=environment_id,
        self_hosted=self_hosted,
        title=title,
        metadata_=metadata,
        max_turns=max_turns,
        chat_approvals=chat_approvals,
        on_ask=on_ask,
        on_behalf_of=speaker,
        speakers=[],
        status="idle",
        turn_number=0,
        turn_count=0,
        last_seq=0,
        stream_positions={},
        usage=NO_USAGE,
        audit_seq=0,
        audit_head=acts.GENESIS,
        unread=0,
        created_at=now,
        updated_at=now,
    )
    session.begin(db, now)
    speakers.check(db, session, speaker)
    person = {"on_behalf_of": f"user:{speaker}"} if speaker else {}
    session.note(principal, "session.created", session.id, agent=version.agent_id, version=version.version, **person)
    Delivery.cause(db, Caused("session.created", session.id))
    db.insert(session)
    return session


def receive(db: Db, session: Session, principal: Principal, events: list[dict[str, Any]]) -> list[Event]:
    """Take a client's events, all or none, in order. Returns them as stored; a repeated decision or result as it was first stored.

    `events` have valid shapes. Raises Conflict (the session is archived; a different decision came first), Invalid with the field.
    """
    if session.status == "terminated":
        raise Conflict(f"Session {session.id} is archived and takes no more events.")
    before = session.last_seq
    taken: list[Event] = []
    for index, event in enumerate(events):
        try:
            taken.append(_TAKERS[event["type"]](db, session, principal, event))
        except Invalid as refusal:
            raise Invalid(f"events.{index}.{refusal.field}", str(refusal).removeprefix(f"{refusal.field}: ")) from None
    stored_now = [event.seq for event in taken if event.seq > before]
    if stored_now:
        session.stream_behind(principal, stored_now[-1])
    return taken


def archive(db: Db, session: Session, principal: Principal) -> None:
    """End the session for good; its history stays. Raises Conflict while work goes on."""
    if session.status == "terminated":
        return
    _quiet(db, session, principal, "archived")
    Grant.end_all(db, session)
    retire_work(db, session, also_held=True)
    session.become("terminated")
    session.archived_at = session.now
    session.emit(db, "session.status_terminated", {})
    session.note(principal, "session.archived", session.id)


def delete(db: Db, session: Session, principal: Principal) -> None:
    """Remove the session and all of its rows but the audit. Raises Conflict while work goes on."""
    _quiet(db, session, principal, "deleted")
    session.note(principal, "session.deleted", session.id)
    db.save()  # the calls and approvals that were just ended, before their rows go
    for table in (Event, Attempt, Vote, Evidence, Approval, StoredResult, ToolCall, Turn, Work, Grant):
        db.write(f'DELETE FROM "{table.__tablename__}" WHERE session_id = %(session)s', session=session.id)  # noqa: S608 - our own names
    acts.record(db, principal, "session.deleted", session.id, {"audit_seq": session.audit_seq, "audit_head": session.audit_head})
    db.delete(session)
    Delivery.cause(db, Caused("session.deleted", session.id))


def _quiet(db: Db, session: Session, principal: Principal, done: str) -> None:
    """Let nothing wait any more, or raise Conflict if something is still being worked on."""
    busy = [c for c in ToolCall.of_turn(db, session) if c.status in {"queued", "running"}]
    if session.live or busy:
        raise Conflict(f"Session {session.id} is running: send user.interrupt and wait until it is idle, then it can be {done}.")
    Turn.read_queue(db, session, None)
    stop(db, session, principal)


def _take_message(db: Db, session: Session, principal: Principal, event: dict[str, Any]) -> Event:
    if decided := take_word(db, session, principal, event):
        return decided
    if session.unread >= MAX_UNREAD:
        raise Conflict(f"{MAX_UNREAD} messages of session {session.id} wait to be read already; wait until it has gone on.")
    person = speakers.hear(db, session, principal, event.get("on_behalf_of"))
    stored = session.emit(db, "user.message", {"content": event["content"], **person}, queued=True)
    session.note(principal, "message.received", stored.id, **person)
    if session.status == "idle":
        session.stream_positions = {}  # of the previous run
        session.run_again(db)
        Turn.queue(db, session, 1)
        Work.want(db, session)
    return stored


def _take_interrupt(db: Db, session: Session, principal: Principal, event: dict[str, Any]) -> Event:
    if event.get("session_thread_id") not in {None, session.thread_id}:
        raise Invalid("session_thread_id", f"session {session.id} has one thread, {session.thread_id}; leave it out.")
    stored = session.emit(db, "user.interrupt", {})
    session.note(principal, "session.interrupted", session.id)
    stop(db, session, principal)
    return stored


def _take_confirmation(db: Db, session: Session, principal: Principal, event: dict[str, Any]) -> Event:
    call = _call(db, session, "tool_use_id", event["tool_use_id"])
    asked = Approval.of_call(db, call.id)
    if not asked:
        raise Invalid(
            "tool_use_id",
            f"{call.id} was not asked about: its permission was {call.permission!r}, and it is {call.status}.",
        )
    decision = Decision(**_decision(event))
    approval = _meant(asked, decision)
    return _stored(db, session, approval, decide(db, session, principal, approval, decision))


def _decision(event: dict[str, Any]) -> dict[str, Any]:
    """The decision's fields, as the event has them; lists become what cannot change."""
    said = {name: event[name] for name in DECISION if event.get(name) is not None}
    return said | ({"respond": tuple(said["respond"])} if "respond" in said else {})


def _meant(asked: list[Approval], decision: Decision) -> Approval:
    """Which of a call's approvals a decision about the call is for. A repeated decision belongs to the one that it first decided,
    never to a later one of an unknown outcome, nor to a question that it does not answer; a call that was asked again, as its
    grant was gone, has its last question open."""
    about = [approval for approval in asked if approval.kind == "tool_call"]
    questions = [approval for approval in asked if approval.kind == "question"]
    if decision.answers is not None:
        if first := next((q for q in questions if q.status != "pending" and q.decision == named(q, decision).said), None):
            return first
        return (questions or about or asked)[-1]
    waiting = [approval for approval in about if approval.status == "pending"]
    open_ = [approval for approval in questions if approval.status == "pending"]
    if decision.result == "deny":
        waiting = waiting or open_
    same = [approval for approval in about + questions if approval.decision == decision.said]
    return (waiting or same or open_ or about or asked)[-1]


def _take_result(db: Db, session: Session, principal: Principal, event: dict[str, Any]) -> Event:
    kind = next(k for k, (type_, _) in RESULTS.items() if type_ == event["type"])
    field = RESULTS[kind][1]
    call = _call(db, session, field, event[field])
    if call.kind != kind:
        wants = "the server runs: it takes no result from a client"
        takes = wants if call.kind in {"builtin", "mcp"} else f"takes a {RESULTS[call.kind][0]}"
        raise Invalid(field, f"{call.id} is a call of {call.name!r}, which {takes}.")
    content, is_error = event.get("content") or [], bool(event.get("is_error"))
    if call.status == "with_client":
        shown = call.echoes(db).value(content)
        stored = session.emit(db, event["type"], {field: call.id, "content": shown, "is_error": is_error})
        session.note(principal, "tool_call.answered", call.id, is_error=is_error)
        call.settle(db, session, "done", content, is_error=is_error, by_client=True)
        carry_on(db, session)
        return stored
    if call.status == "done" and CallResult.of(db, call.id).content == content and call.is_error == is_error:
        of_call = "WHERE session_id = %(session)s AND type = %(type)s AND body ->> %(field)s = %(call)s"
        [stored] = db.find(Event, of_call, session=session.id, type=event["type"], field=field, call=call.id)
        return stored
    said = "it awaits approval" if call.status == "asked" else f"it is {call.status} already"
    raise Invalid(field, f"{call.id} takes no result now: {said}.")


_TAKERS = {
    "user.message": _take_message,
    "user.interrupt": _take_interrupt,
    "user.tool_confirmation": _take_confirmation,
    "user.custom_tool_result": _take_result,
    "user.tool_result": _take_result,
}


def _call(db: Db, session: Session, field: str, call_id: str) -> ToolCall:
    ToolCall.of_turn(db, session)  # mostly one of them, and all are wanted soon
    call = db.get(ToolCall, call_id)
    if call is None or call.session_id != session.id:
        raise Invalid(
            field,
            f"session {session.id} has no tool call {call_id!r}; use the id of the event that told of it.",
        )
    return call


def _stored(db: Db, session: Session, approval: Approval, event_id: str) -> Event:
    fresh = [event for event in session.events if event.id == event_id]
    if fresh:
        return fresh[0]
    stored = db.first(Event, "WHERE session_id = %(session)s AND id = %(id)s", session=session.id, id=event_id)
    return stored or confirmation.unsent(approval)
