"""Sessions: a durable conversation with one agent. The row is the lock, the counter of events and the head of the audit chain."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.audit import acts
from models.audit.acts import Audit
from models.audit.principal import Principal
from models.audit.text import AuditText
from models.database import ids
from models.database.clock import NOW
from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base, Hex
from models.database.transactions import outbox
from models.outbox.approval_change import ApprovalChange
from models.outbox.delivery import Caused, Delivery
from models.policy.effective_tool import with_toolset
from models.pure import states
from models.pure.charges import Charge, summed
from models.pure.money import monetary, spending
from models.pure.webhook_events import caused_by
from models.session.event import Event
from models.workspace.agent import AgentVersion
from models.workspace.toolset import OF_SESSION

ACTIVE = ("running", "stopping")
"""Statuses that count as active time."""


class Session(Base):
    """A conversation. Every verb of its turns, calls and approvals works under its lock."""

    __tablename__ = "session"
    __allow_unmapped__ = True  # for what belongs to one transaction

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    agent_id: Mapped[str]
    """Without foreign keys: workspaces and agents are never deleted, and each check would lock their rows."""
    agent_version: Mapped[int]
    """The version that was the head when the session was created, or that it asked for."""
    overrides: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Fields of that version's body that this session has otherwise."""
    environment_id: Mapped[str] = mapped_column(sa.ForeignKey("environment.id"))
    self_hosted: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """Whether the client's own worker runs the built-in tools, not ours; the environment's type, which never changes."""
    title: Mapped[str | None]
    metadata_: Mapped[dict[str, str]] = mapped_column("metadata", JSONB(none_as_null=True))
    max_turns: Mapped[int]
    chat_approvals: Mapped[bool] = mapped_column(default=False)
    on_ask: Mapped[str] = mapped_column(default="inbox", server_default="inbox")
    """What becomes of a call that a policy asks about: `inbox`, people are asked; `deny`, the call is denied at once."""
    on_behalf_of: Mapped[str | None]
    """The person for whom the session was created."""
    speakers: Mapped[list[str]] = mapped_column(ARRAY(sa.Text), server_default="{}")
    """The people who started the present run, or sent a message to it: with four eyes they may not decide its calls."""
    status: Mapped[str] = mapped_column(default="idle")
    stop_reason: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The last `session.status_idle`'s."""
    turn_id: Mapped[str | None]
    """The turn that is queued, running, or whose calls are being settled."""
    turn_number: Mapped[int] = mapped_column(default=0)
    """Of that turn, from 1, over the whole session."""
    turn_count: Mapped[int] = mapped_column(default=0)
    """Turns since the last user message; `max_turns` limits it."""
    last_seq: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    unread: Mapped[int] = mapped_column(default=0)
    """Messages that no turn has read yet."""
    usage: Mapped[dict[str, Any]] = mapped_column(JSONB(none_as_null=True))
    """The sum of what its attempts consumed: `models.pure.charges.summed`."""
    max_list_cost: Mapped[Decimal | None] = mapped_column(sa.Numeric)
    """The budget in US dollars, which only the creation can set first. None: there is none."""
    spend_limits_from: Mapped[Decimal | None] = mapped_column(sa.Numeric)
    """Spend limits stop the session only from this list cost on, because a person allowed it to spend more. None: always."""
    context_tokens: Mapped[int] = mapped_column(default=0, server_default="0")
    """The size of the last request with its reply, with which the next request begins."""
    context_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When that request ended."""
    active_seconds: Mapped[float] = mapped_column(default=0.0, server_default="0")
    """How long it was in a status of `ACTIVE`, without the present time."""
    active_since: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Since when it is in such a status."""
    long_results: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """Whether a result was too long for the model and is stored whole: its agent is given a tool to read it."""
    stream_positions: Mapped[dict[str, int]] = mapped_column(JSONB(none_as_null=True))
    """Where a stream that names no position begins, by principal: behind the last event that the principal sent in this run.

    A principal who was streamed the run's end is no longer in it. Whoever is not in it begins at the newest event.
    """
    git_written: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True once a call began that may write files from which git runs programs, or a worker found some: then no git command is
    surely read."""
    storage_id: Mapped[str | None]
    """The workdir root that holds this session's files; set by the first tools worker that made them."""
    audit_seq: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    audit_head: Mapped[str] = mapped_column(Hex, default=acts.GENESIS)
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("session_newest", "workspace_id", "created_at"),)

    now: datetime
    """The database's time, read once after the lock."""
    watched: bool
    """False if the workspace has no enabled endpoint and no enabled channel, so that no event needs a delivery."""
    events: list[Event]
    """The events that this transaction appended."""
    written: int
    """How many of them are written. The rest leaves with the next read or the commit."""
    acts: list[dict[str, Any]]
    """Rows of the audit that are not written yet."""
    texts: list[dict[str, Any]]
    """The texts of those acts."""
    turn: Any
    """The current turn's row, where `flow.lock` has read it: whoever looks for it by its id finds it here."""
    calls: list[Any] | None
    """The tool calls of the current turn, once this transaction has read them."""
    policies: dict[str, Any] | None
    """What holds in the workspace, as `models.policy.session_policies` takes it, once this transaction has read it."""

    @staticmethod
    def heads(db: Db, session_ids: list[str]) -> dict[str, int]:
        """`last_seq` of these sessions, in any workspace, by a function of the database. Deleted sessions are missing."""
        return dict(db.rows("SELECT id, last_seq FROM assent_session_heads(CAST(%(ids)s AS text[]))", ids=session_ids))

    @classmethod
    def try_lock(cls, db: Db, session_id: str) -> "Session | None":
        """The session, locked; None if it is gone or locked by another transaction (sweeps come again). `flow.lock` waits."""
        rows, [(now,)] = db.read(cls.locking(session_id, "SKIP LOCKED"), NOW)
        return rows[0].begin(db, now) if rows else None

    @classmethod
    def locking(cls, session_id: str, how: str = "") -> "Query[Session]":
        """The query that locks a session. Read the clock behind it. `how`: `SKIP LOCKED`, or empty to wait."""
        return select(cls, f"WHERE id = %(id)s FOR NO KEY UPDATE {how}", id=session_id)

    def begin(self, db: Db, now: datetime, *, watched: bool = True) -> "Session":
        """Start to collect what the transaction appends, at the time `now`. Once in a transaction."""
        assert self not in db.appends, f"session {self.id} is locked already"
        self.now, self.watched = now, watched
        self.events, self.written, self.acts, self.texts = [], 0, [], []
        self.turn, self.calls, self.policies = None, None, None
        db.appends.append(self)
        return self

    def write(self, db: Db) -> None:
        """Write the events and acts collected so far."""
        events, acts, texts = self.events[self.written :], self.acts, self.texts
        self.written, self.acts, self.texts = len(self.events), [], []
        db.insert_many(Event, [event.row for event in events])
        db.insert_many(Audit, acts)
        db.insert_many(AuditText, texts)
        if self.watched:
            Delivery.cause(db, *(Caused(*caused) for event in events for caused in caused_by(event.type, event.body, self.id)))
            ApprovalChange.cause(db, self.id, [(event.type, event.seq, event.body) for event in events])

    def emit(self, db: Db, kind: str, body: dict[str, Any], *, id: str | None = None, queued: bool = False) -> Event:  # noqa: A002 - the wire's word
        """Append an event. `queued` is for a user's message that no turn has read yet."""
        self.last_seq += 1
        event = Event(
            session_id=self.id,
            seq=self.last_seq,
            id=id or ids.new("sevt"),
            workspace_id=self.workspace_id,
            type=kind,
            body=body,
            created_at=self.now,
            processed_at=None if queued else self.now,
        )
        self.events.append(event)
        self.unread += int(queued)
        self.updated_at = self.now
        outbox(db).sessions[self.id] = self.last_seq
        if kind.startswith("approval."):
            outbox(db).workspaces.add(self.workspace_id)
        return event

    def stream_behind(self, principal: Principal, seq: int) -> None:
        """Have the principal's next stream begin behind the event `seq`, which the principal sent."""
        self.stream_positions = self.stream_positions | {principal.id: seq}

    def note(self, principal: Principal, action: str, subject_id: str, **details: Any) -> None:
        """Append an act to the session's audit chain. A detail that somebody wrote is given as `Text`, so that it can be erased."""
        act, texts = acts.entry(self, principal, action, subject_id, details, self.now)
        self.acts.append(act)
        self.texts += texts

    def become(self, status: str) -> None:
        """Change the status by the table in `states`, under the lock that the caller holds. Same again is nothing."""
        if status == self.status:
            return
        states.check("session", self.status, status)
        if self.active_since and status not in ACTIVE:
            self.active_seconds, self.active_since = self.active_for(self.now), None
        elif self.active_since is None and status in ACTIVE:
            self.active_since = self.now
        self.status = status

    def active_for(self, at: datetime) -> float:
        """For how many seconds it was active, up to `at`."""
        present = (at - self.active_since).total_seconds() if self.active_since else 0.0
        return round(self.active_seconds + max(present, 0.0), 6)

    def run_again(self, db: Db) -> None:
        """Running, with its event if it was not."""
        if self.status != "running":
            self.become("running")
            self.emit(db, "session.status_running", {})

    def rest_again(self, db: Db) -> None:
        """It waits still: say so again, as idle comes last."""
        self.emit(db, "session.status_idle", {"stop_reason": self.stop_reason})

    def count(self, charge: Charge, times: int = 1) -> None:
        """Add what an attempt consumed, or remove it if `times` is -1."""
        self.usage = summed(self.usage, charge, times)

    @property
    def spender(self) -> str | None:
        """The person who pays: for whom it was created, else the only one who speaks in its run."""
        return self.on_behalf_of or (self.speakers[0] if len(self.speakers) == 1 else None)

    def spending(self, at: datetime) -> dict[str, Any]:
        """What it consumed up to `at`, as events and answers have it."""
        return spending(self.usage) | {"active_seconds": self.active_for(at)}

    @property
    def list_cost(self) -> Decimal:
        """What its requests with a price cost, in US dollars."""
        return Decimal(self.usage.get("cost", "0"))

    @property
    def budget(self) -> dict[str, Any] | None:
        """The budget as the wire has it."""
        return None if self.max_list_cost is None else {"type": "limit", "max_list_cost": monetary(self.max_list_cost)}

    def report_usage(self, db: Db) -> None:
        """Say what it consumed so far, and its budget."""
        self.emit(db, "session.usage", {"usage": self.spending(self.now), "budget": self.budget})

    def agent(self, db: Db) -> dict[str, Any]:
        """Its agent: the wire's body of that version, with the session's overrides, and what the session itself brings."""
        configured = self.configured(db)
        return with_toolset(configured, OF_SESSION) if self.long_results else configured

    def configured(self, db: Db) -> dict[str, Any]:
        """Its agent as its owner configured it."""
        return AgentVersion.of_session(db, self.agent_id, self.agent_version).snapshot(self.overrides)

    @property
    def thread_id(self) -> str:
        """The id of the session's own thread: the session's, by another prefix."""
        return "sthr_" + self.id.partition("_")[2]

    @property
    def live(self) -> bool:
        """Whether work goes on, so that archiving and deleting must wait."""
        return self.status in {"running", "rescheduling", "stopping"}
