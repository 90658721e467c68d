"""A session under its lock: what every verb of its turns, calls and approvals takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from models.audit import acts
from models.audit.acts import Audit
from models.audit.principal import Principal
from models.audit.text import AuditText
from models.database import ids
from models.database.clock import NOW
from models.database.rows import Db
from models.database.transactions import outbox
from models.errors import NotFound
from models.outbox.approval_change import ApprovalChange
from models.outbox.delivery import Caused, Delivery
from models.outbox.webhook_events import caused_by
from models.pure import states
from models.session.event.fields import EventBody
from models.session.event.of_session import SessionUsage, StatusIdle, StatusRunning, StopReason
from models.session.event.row import Event
from models.session.row import ACTIVE, Session
from models.workspace.row import Workspace


@dataclass(eq=False)
class Locked:
    """A session, locked until the transaction ends, with what the transaction adds to its events and its audit.

    `lock` and its like make one. A session is locked once in a transaction.
    """

    db: Db
    session: Session
    actor: Principal
    """Who makes the changes, for the audit."""
    now: datetime
    """The database's time, read once after the lock."""
    watched: bool = True
    """False if the workspace has no enabled endpoint and no enabled channel, so that no event needs a delivery."""
    calls: list[Any] | None = None
    """The tool calls of the current turn. None until `ToolCall.of_turn` reads them."""
    _policies: dict[str, Any] | None = None
    events: list[Event] = field(default_factory=list)
    """The events that this transaction appended."""
    holds_step: bool = False
    """True within `models.flow.carry_on.next_step.one_step`, which takes the next step at its end."""
    owes_step: bool = False
    """True if such a step has to follow."""
    _written: int = 0
    """Number of the events that are written. The next read or the commit writes the others."""
    _acts: list[dict[str, Any]] = field(default_factory=list)
    """Audit rows that are not written yet."""
    _texts: list[dict[str, Any]] = field(default_factory=list)
    """The texts of these acts."""

    def __post_init__(self) -> None:
        assert Locked.of(self.db, self.session) is None, f"session {self.session.id} is locked already"
        self.db.appends.append(self)

    @staticmethod
    def of(db: Db, session: Session) -> "Locked | None":
        """Return the lock that this transaction has on a session, or None."""
        return next((one for one in db.appends if isinstance(one, Locked) and one.session is session), None)

    @property
    def policies(self) -> dict[str, Any]:
        """The workspace's policies, as `models.policy.session_policies` needs them. Read once per transaction."""
        if self._policies is None:
            self._policies = Workspace.policies(self.db)
        return self._policies

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
        db, events, rows, texts = self.db, self.events[self._written :], self._acts, self._texts
        self._written, self._acts, self._texts = len(self.events), [], []
        db.insert_many(Event, [event.row for event in events])
        db.insert_many(Audit, rows)
        db.insert_many(AuditText, texts)
        if self.watched:
            session_id = self.session.id
            Delivery.cause(db, *(Caused(*caused) for event in events for caused in caused_by(event.type, event.body, session_id)))
            ApprovalChange.cause(db, session_id, [(event.type, event.seq, event.body) for event in events])

    def emit(self, event: EventBody, *, id: str | None = None, queued: bool = False) -> Event:  # noqa: A002 - the wire's word
        """Append an event. `queued` is for a user's message that no turn has read yet."""
        session, body = self.session, dict[str, Any](event)
        kind = body.pop("type")
        session.last_seq += 1
        row = Event(
            session_id=session.id,
            seq=session.last_seq,
            id=id or ids.new("sevt"),
            workspace_id=session.workspace_id,
            type=kind,
            body=body,
            created_at=self.now,
            processed_at=None if queued else self.now,
        )
        self.events.append(row)
        session.unread += int(queued)
        session.updated_at = self.now
        outbox(self.db).sessions[session.id] = session.last_seq
        if kind.startswith("approval."):
            outbox(self.db).workspaces.add(session.workspace_id)
        return row

    def note(self, action: str, subject_id: str, **details: Any) -> None:
        """Append an act to the session's audit chain. Pass a detail that somebody wrote as `Text`, so that it can be erased."""
        act, texts = acts.entry(self.session, self.actor, action, subject_id, details, self.now)
        self._acts.append(act)
        self._texts += texts

    def become(self, status: str) -> None:
        """Change the status. No-op if the session has it already. Raises ValueError if `states` lists no such transition."""
        session = self.session
        if status == session.status:
            return
        states.check("session", session.status, status)
        if session.active_since and status not in ACTIVE:
            session.active_seconds, session.active_since = session.active_for(self.now), None
        elif session.active_since is None and status in ACTIVE:
            session.active_since = self.now
        session.status = status
        if status != "waiting":
            session.waits_for = "none"

    def run_again(self) -> None:
        """Set the status `running`, with its event. No-op if the session is running already."""
        if self.session.status != "running":
            self.become("running")
            self.emit(StatusRunning(type="session.status_running"))

    def rest_again(self) -> None:
        """Repeat the event of a session that still waits, because runners expect `session.status_idle` as the last event."""
        reason = cast("StopReason", self.session.stop_reason)
        self.emit(StatusIdle(type="session.status_idle", stop_reason=reason))

    def report_usage(self) -> None:
        """Emit `session.usage`, with the usage so far and the budget."""
        usage, budget = self.session.spending(self.now), self.session.budget
        self.emit(SessionUsage(type="session.usage", usage=usage, budget=budget))


def try_lock(db: Db, session_id: str, actor: Principal) -> Locked | None:
    """Return the session, locked; None if it is gone, or locked by another transaction. `models.flow.lock` waits instead."""
    sessions, [(now,)] = db.read(Session.locking(session_id, "SKIP LOCKED"), NOW)
    return Locked(db, sessions[0], actor, now) if sessions else None


def lock_alone(db: Db, session_id: str, actor: Principal) -> Locked:
    """Return the session, locked, and read no other row: for verbs that must work though another row cannot be read.

    Raises NotFound.
    """
    sessions, [(now,)] = db.read(Session.locking(session_id), NOW)
    if not sessions:
        raise NotFound("session", session_id)
    return Locked(db, sessions[0], actor, now)
