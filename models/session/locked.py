"""A session under its lock: what every verb of its turns, calls and approvals takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, cast

from models.audit import acts
from models.audit.acts import Audit
from models.audit.principal import Principal
from models.audit.text import AuditText
from models.database import ids
from models.database.clock import NOW
from models.database.rows import Db
from models.database.trace import Run, cause
from models.database.transactions import outbox
from models.errors import NotFound
from models.outbox.approval_change import ApprovalChange
from models.outbox.delivery import Caused, Delivery
from models.outbox.webhook_events import caused_by
from models.pure import states
from models.session.event import of_thread
from models.session.event.fields import EventBody
from models.session.event.of_session import Json, SessionUsage, StatusIdle, StatusRunning, StopReason
from models.session.event.row import Event, crosses
from models.session.row import Session
from models.session.thread.progress import Joint
from models.session.thread.row import Thread
from models.workspace.row import Workspace


class OfThread(Protocol):
    """A row of one thread: a turn, a call, or an event."""

    thread_id: str


@dataclass(eq=False)
class Changes:
    """What one transaction reads and collects under a session's lock, for all of the session's threads."""

    events: list[Event] = field(default_factory=list)
    """The events that this transaction appended."""
    calls: dict[str, list[Any]] = field(default_factory=dict)
    """By thread: the tool calls of its current turn, once they are read."""
    policies: dict[str, Any] | None = None
    holds_step: bool = False
    """True within `models.flow.carry_on.next_step.one_step`, which takes the next steps at its end."""
    owes_step: "dict[str, Locked]" = field(default_factory=dict)
    """By thread, the lock on it: the threads that then have to take one."""
    write_position: int = 0
    """Number of the events that are written. The next read or the commit writes the others."""
    acts: list[dict[str, Any]] = field(default_factory=list)
    """Audit rows that are not written yet."""
    texts: list[dict[str, Any]] = field(default_factory=list)
    """The texts of these acts."""


@dataclass(eq=False)
class Locked:
    """A session, locked until the transaction ends, with what the transaction adds to its events and its audit.

    Verbs work on `thread`, the thread at hand, which is the session's own at first; `on` gives the same lock for another thread.
    `lock` and its like make one. A session is locked once in a transaction.
    """

    db: Db
    session: Session
    actor: Principal
    """Who makes the changes, for the audit."""
    now: datetime
    """The database's time, read once after the lock."""
    threads: list[Thread]
    """All threads of the session, its own first, without archived ones of sub-agents."""
    watched: bool = True
    """False if the workspace has no enabled endpoint and no enabled channel, so that no event needs a delivery."""
    changes: Changes = field(default_factory=Changes)
    thread: Thread = field(init=False)

    def __post_init__(self) -> None:
        assert Locked.of(self.db, self.session) is None, f"session {self.session.id} is locked already"
        self.thread = self.threads[0]
        self.db.appends.append(self)

    @staticmethod
    def of(db: Db, session: Session) -> "Locked | None":
        """Return the lock that this transaction has on a session, or None."""
        return next((one for one in db.appends if isinstance(one, Locked) and one.session is session), None)

    def on(self, thread: Thread) -> "Locked":
        """Return this lock with another thread at hand."""
        if thread is self.thread:
            return self
        other = copy(self)
        other.thread = thread
        return other

    def at(self, row: OfThread) -> "Locked":
        """Return this lock with the thread of a turn or call at hand."""
        thread = next((thread for thread in self.threads if thread.id == row.thread_id), None)
        return self.on(thread or self.db.get_one(Thread, self.session.id, row.thread_id))

    @property
    def agent(self) -> dict[str, Any]:
        """The agent of the thread at hand, as its turns have it."""
        return self.session.agent_of(self.db, self.thread)

    @property
    def each(self) -> "list[Locked]":
        """This lock with each thread of the session at hand, its own first."""
        return [self.on(thread) for thread in self.threads]

    @property
    def events(self) -> list[Event]:
        """The events that this transaction appended."""
        return self.changes.events

    @property
    def policies(self) -> dict[str, Any]:
        """The workspace's policies, as `models.policy.session_policies` needs them. Read once per transaction."""
        if self.changes.policies is None:
            self.changes.policies = Workspace.policies(self.db)
        return self.changes.policies

    @contextmanager
    def acting_as(self, actor: Principal) -> Iterator[None]:
        """Have the changes of the block made by another principal."""
        before, self.actor = self.actor, actor
        try:
            yield
        finally:
            self.actor = before

    def write(self) -> None:
        """Write the events and acts collected so far."""
        db, changes = self.db, self.changes
        events, rows, texts = changes.events[changes.write_position :], changes.acts, changes.texts
        changes.write_position, changes.acts, changes.texts = len(changes.events), [], []
        db.insert_many(Event, [event.row for event in events])
        db.insert_many(Audit, rows)
        db.insert_many(AuditText, texts)
        if self.watched:
            session_id = self.session.id
            Delivery.cause(db, *(Caused(*caused) for event in events for caused in caused_by(event.type, event.body, session_id)))
            ApprovalChange.cause(db, session_id, [(event.type, event.seq, event.body) for event in events])

    def emit(self, event: EventBody, *, id: str | None = None, queued: bool = False) -> Event:  # noqa: A002 - the wire's word
        """Append an event of the thread at hand. `queued` is for a message that no turn has read yet."""
        session, body = self.session, dict[str, Any](event)
        kind = body.pop("type")
        session.last_seq += 1
        others = self.thread is not self.threads[0]
        row = Event(
            session_id=session.id,
            seq=session.last_seq,
            id=id or ids.new("sevt"),
            workspace_id=session.workspace_id,
            thread_id=self.thread.id,
            cross_posted=others and crosses(kind, body, self_hosted=session.self_hosted),
            type=kind,
            body=body,
            created_at=self.now,
            processed_at=None if queued and kind == "user.message" else self.now,
        )
        self.events.append(row)
        self.thread.unread += int(queued)
        session.updated_at = self.now
        outbox(self.db).sessions[session.id] = session.last_seq
        if kind.startswith("approval."):
            outbox(self.db).workspaces.add(session.workspace_id)
        return row

    def tell(self, event: EventBody) -> None:
        """Append an event about the whole session, which is one of the session's own thread."""
        self.on(self.threads[0]).emit(event)

    def note(self, action: str, subject_id: str, **details: Any) -> None:
        """Append an act to the session's audit chain. Pass a detail that somebody wrote as `Text`, so that it can be erased.

        An act with a sub-agent's thread at hand names the thread. Its act `thread.created` names the agent and the version.
        """
        if self.thread.parent_id:
            details["in_thread"] = self.thread.id
        act, texts = acts.entry(self.session, self.actor, action, subject_id, details, self.now)
        self.changes.acts.append(act)
        self.changes.texts += texts

    def begin_thread(self, thread: Thread) -> "Locked":
        """Insert a thread that the thread at hand begins. Returns this lock with the new thread at hand.

        The session's own thread says its status first: the SDK's runner takes the first thread of a log for it.
        """
        if not self.has_threads:
            self.on(self.threads[0]).say_status()
        self.session.threads_begun += 1
        self.db.insert(thread)
        self.threads.append(thread)
        created = of_thread.ThreadCreated(type="session.thread_created", session_thread_id=thread.id, agent_name=thread.name)
        self.emit(created)
        return self.on(thread)

    @property
    def has_threads(self) -> bool:
        """True if the session's threads say their status. The one thread of a session does not, as the session says the same."""
        return self.session.threads_begun > 0

    def say_status(self, stop_details: Json | None = None) -> None:
        """Emit the event of the thread's status, if the SDK has one. `stop_details`: why the model refused."""
        event = of_thread.status_of(self.thread, stop_details)
        if event is not None:
            self.emit(event)

    def cross_post(self, event_id: str) -> None:
        """Have the session's list show an event of another thread, though it did not when it was emitted.

        No-op for an event of this transaction. Streams that have passed the event do not show it.
        """
        if all(event.id != event_id for event in self.events):
            self.db.write(_CROSS_POST, session=self.session.id, id=event_id)

    def become(self, status: str, stop_reason: StopReason | None = None, stop_details: Json | None = None) -> bool:
        """Change the thread's status, and its stop reason if one is given. The session's progress follows from all threads.

        `stop_details`: why the model refused, for the event of the thread. Returns True if the session's status or stop reason
        changed. Raises ValueError if `states` lists no such transition.
        """
        thread, before = self.thread, (self.thread.status, self.thread.stop_reason)
        if status != thread.status:
            states.check("thread", thread.status, status)
            self._follow_run(status, stop_reason)
            thread.enter(status, self.now)
            thread.updated_at = self.now
            if status != "waiting":
                thread.waits_for = "none"
        if stop_reason is not None and stop_reason != thread.stop_reason:
            thread.stop_reason = stop_reason
        if self.has_threads and before != (thread.status, thread.stop_reason):
            self.say_status(stop_details)
        return self._follow()

    def _follow_run(self, status: str, stop_reason: StopReason | None) -> None:
        """Begin the run's trace when the thread leaves its rest, and end it when the thread rests again."""
        thread = self.thread
        if thread.status == "idle":
            run = Run.begin(self.now) if status != "terminated" else None
            if run != thread.trace:
                thread.trace = run
        elif status in {"idle", "terminated"} and (present := Run.of(thread.id, thread.trace)):
            reason = (stop_reason or thread.stop_reason or {}).get("type", "")
            about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": thread.agent_id, "gen_ai.agent.name": thread.name}
            about |= {"gen_ai.conversation.id": self.session.id, "assent.stop_reason": reason}
            error = reason if reason == "retries_exhausted" else ""
            outbox(self.db).spans.append(present.whole(f"invoke_agent {thread.name}", self.now.timestamp(), about, error))

    def trace(self, operation: str, target: str, start: datetime, about: dict[str, str]) -> None:
        """Add a span of the thread's run that ends now. Links name the requests that caused the run and this transaction."""
        if run := Run.of(self.thread.id, self.thread.trace):
            links = tuple(dict.fromkeys(place for place in (run.parent, cause.get()) if place))
            about = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": self.session.id, **about}
            span = run.part(f"{operation} {target}", start.timestamp(), self.now.timestamp(), about, links=links)
            outbox(self.db).spans.append(span)

    def _follow(self) -> bool:
        """Derive the session's progress. Only this method changes it. Returns True if its status or stop reason changed."""
        session, joint = self.session, Joint.of(self.threads)
        before = (session.status, session.stop_reason)
        if joint.status != session.status:
            session.enter(joint.status, self.now)
        if joint.waits_for != session.waits_for:
            session.waits_for = joint.waits_for
        if joint.stop_reason is not None and joint.stop_reason != session.stop_reason:
            session.stop_reason = joint.stop_reason
        return before != (session.status, session.stop_reason)

    def run_again(self) -> None:
        """Have the thread run. The event follows if the session did not run already."""
        if self.thread.status != "running" and self.become("running"):
            self.tell(StatusRunning(type="session.status_running"))

    def rest_again(self) -> None:
        """Repeat the event of a session that still waits, because runners expect `session.status_idle` as the last event."""
        reason = cast("StopReason", self.session.stop_reason)
        self.tell(StatusIdle(type="session.status_idle", stop_reason=reason))

    def report_usage(self) -> None:
        """Emit `session.usage`, with the usage so far and the budget."""
        usage, budget = self.session.spending(self.now), self.session.budget
        self.tell(SessionUsage(type="session.usage", usage=usage, budget=budget))


_CROSS_POST = """
    UPDATE event SET cross_posted = true WHERE session_id = %(session)s AND NOT cross_posted AND seq = (
        SELECT seq FROM event WHERE session_id = %(session)s AND id = %(id)s ORDER BY seq DESC LIMIT 1
    )
"""


def try_lock(db: Db, session_id: str, actor: Principal) -> Locked | None:
    """Return the session, locked; None if it is gone, or locked by another transaction. `models.flow.lock` waits instead."""
    sessions, threads, [(now,)] = db.read(Session.locking(session_id, "SKIP LOCKED"), Thread.open_of(session_id), NOW)
    return Locked(db, sessions[0], actor, now, threads) if sessions else None


def lock_alone(db: Db, session_id: str, actor: Principal) -> Locked:
    """Return the session, locked, and read no row but it and its threads: for verbs that must work though others cannot be read.

    Raises NotFound.
    """
    sessions, threads, [(now,)] = db.read(Session.locking(session_id), Thread.open_of(session_id), NOW)
    if not sessions:
        raise NotFound("session", session_id)
    return Locked(db, sessions[0], actor, now, threads)
