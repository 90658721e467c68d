"""A session's beginning and end: create, archive, delete."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from models.audit import acts, legal_hold
from models.audit.principal import Principal
from models.database import ids
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.begin import speakers
from models.flow.carry_on.hosted_work import retire_work
from models.flow.carry_on.next_step import stop_all
from models.flow.spend.budgets import check_budgetable
from models.outbox import removal
from models.outbox.delivery import Caused, Delivery
from models.session.approval.grant import Grant
from models.session.event.of_session import StatusTerminated
from models.session.locked import Changes, Locked
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.workspace.agent import AgentVersion
from models.workspace.environment import Environment
from models.workspace.row import POLICIES, as_policies


@dataclass(frozen=True, kw_only=True)
class NewSession:
    """What a client asks for in a new session."""

    version: AgentVersion
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Replaces fields of the agent in this session."""
    environment_id: str | None
    """None for the built-in environment."""
    title: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    max_turns: int
    chat_approvals: bool = False
    on_ask: str = "inbox"
    on_behalf_of: str | None = None
    """The person for whom an API key acts, as `user:ID`."""
    max_list_cost: Decimal | None = None


def create(db: Db, principal: Principal, new: NewSession) -> Locked:
    """Create and return an idle session of one version of an agent.

    Raises Invalid if the environment is missing or archived, and if no person is named although the agent's calls need four eyes.
    """
    environments, policies = db.read(Environment.keeping(new.environment_id), POLICIES)
    environment = Environment.for_session(environments)
    [(*_, watched, now)] = policies
    speaker = speakers.speaker_id(db, principal, new.on_behalf_of)
    session = _idle(
        principal,
        new,
        now,
        environment_id=environment.id,
        self_hosted=environment.self_hosted,
        on_behalf_of=speaker,
    )
    thread = session.own_thread(new.version.snapshot(session.overrides)["name"])
    locked = Locked(db, session, principal, now, [thread], watched, Changes(calls={thread.id: []}, policies=as_policies(policies)))
    speakers.check(locked, [speaker, *principal.makers])
    if new.max_list_cost is not None:
        check_budgetable(locked)
    _record_creation(locked)
    return locked


def _idle(principal: Principal, new: NewSession, now: datetime, **columns: Any) -> Session:
    """Return a session in which nothing has happened."""
    return Session(
        id=ids.new("sesn"),
        workspace_id=principal.workspace_id,
        agent_id=new.version.agent_id,
        agent_version=new.version.version,
        overrides=dict(new.overrides) or None,
        title=new.title,
        metadata_=dict(new.metadata),
        max_turns=new.max_turns,
        chat_approvals=new.chat_approvals,
        on_ask=new.on_ask,
        makers=list(principal.makers) or None,
        max_list_cost=new.max_list_cost,
        speakers=[],
        status="idle",
        last_seq=0,
        stream_positions={},
        usage={},
        audit_seq=0,
        audit_head=acts.GENESIS,
        created_at=now,
        updated_at=now,
        **columns,
    )


def _record_creation(locked: Locked) -> None:
    """Insert the session and its own thread, with its act and its webhook."""
    session = locked.session
    details = {"agent": session.agent_id, "version": session.agent_version}
    if session.on_behalf_of:
        details["on_behalf_of"] = f"user:{session.on_behalf_of}"
    locked.note("session.created", session.id, **details)
    if locked.watched:
        Delivery.cause(locked.db, Caused("session.created", session.id))
    locked.db.insert(session)
    locked.db.insert(locked.thread)


def archive(locked: Locked) -> None:
    """End the session for good, and keep its history. Idempotent. Raises Conflict while the session runs."""
    session = locked.session
    if session.status == "terminated":
        return
    _quiet(locked.each, "archived")
    Grant.end_all(locked)
    retire_work(locked, also_held=True)
    for each in locked.each:
        each.become("terminated")
        each.thread.archived_at = each.thread.archived_at or locked.now
    session.archived_at = locked.now
    locked.tell(StatusTerminated(type="session.status_terminated"))
    locked.note("session.archived", session.id)


def archive_thread(locked: Locked) -> None:
    """End the thread at hand for good; for the session's own thread, end the session. Idempotent. Raises Conflict while it runs."""
    thread = locked.thread
    if thread is locked.threads[0]:
        archive(locked)
        return
    if thread.status == "terminated":
        return
    _quiet([locked], "archived")
    locked.become("terminated")
    thread.archived_at = locked.now
    locked.note("thread.archived", thread.id)


def delete(locked: Locked) -> None:
    """Delete the session. Nobody sees its rows any more, and a sweep removes them. Its audit stays.

    Raises Conflict while the session runs, or while it or its workspace is on a legal hold.
    """
    db, session = locked.db, locked.session
    _quiet(locked.each, "deleted")
    locked.note("session.deleted", session.id)
    db.save()  # sends the changes of calls and approvals before their rows are hidden
    removal.begin(db, "session", session.id)
    acts.record(db, locked.actor, "session.deleted", session.id, {"audit_seq": session.audit_seq, "audit_head": session.audit_head})
    legal_hold.refuse(db, session.id)
    db.delete(session)
    Delivery.cause(db, Caused("session.deleted", session.id))


def gone(session_ids: list[str]) -> set[str]:
    """Return the ids of deleted sessions, in any workspace. Tools workers' role cannot read all sessions."""
    with transaction() as db:
        rows = db.rows("SELECT assent_gone_sessions(CAST(%(ids)s AS text[]))", ids=session_ids)
        return {session_id for (session_id,) in rows}


def _quiet(threads: list[Locked], done: str) -> None:
    """Cancel everything that waits in these threads. Raises Conflict while a turn or a call of them is queued or runs.

    `done` is for the error.
    """
    busy = [call for each in threads for call in ToolCall.of_turn(each) if call.status in {"queued", "running"}]
    if busy or any(each.thread.live for each in threads):
        session_id = threads[0].session.id
        raise Conflict(f"Session {session_id} is running: send user.interrupt and wait until it is idle, then it can be {done}.")
    for each in threads:
        Turn.read_queue(each, None)
    stop_all(threads)
