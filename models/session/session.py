"""Sessions: a durable conversation with one agent. The row is the lock, the counter of events and the head of the audit chain."""

from datetime import datetime
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
from models.database.tables import Base
from models.database.transactions import outbox
from models.outbox.delivery import Caused, Delivery
from models.policy.effective_tool import with_toolset
from models.pure import states
from models.pure.webhook_events import caused_by
from models.session.event import Event
from models.workspace.agent import AgentVersion
from models.workspace.toolset import OF_SESSION

USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
NO_USAGE = dict.fromkeys(USAGE, 0)


class Session(Base):
    """A conversation. Every verb of its turns, calls and approvals works under its lock."""

    __tablename__ = "session"
    __allow_unmapped__ = True  # for what belongs to one transaction

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    agent_id: Mapped[str] = mapped_column(sa.ForeignKey("agent.id"))
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
    usage: Mapped[dict[str, int]] = mapped_column(JSONB(none_as_null=True))
    """Tokens so far, by the names in `USAGE`."""
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
    audit_head: Mapped[str] = mapped_column(default=acts.GENESIS)
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    archived_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("session_newest", "workspace_id", "created_at", "id"),)

    now: datetime
    """The database's time, read once after the lock."""
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
    """What holds in the workspace, as `models.policy.ruling` takes it, once this transaction has read it."""

    @staticmethod
    def heads(db: Db, session_ids: list[str]) -> dict[str, int]:
        """`last_seq` of these sessions, in any workspace, by a function of the database. Deleted sessions are missing."""
        return dict(db.rows("SELECT id, last_seq FROM assent_session_heads(CAST(%(ids)s AS text[]))", ids=session_ids))

    @classmethod
    def try_lock(cls, db: Db, session_id: str) -> "Session | None":
        """The session, locked; None if it is gone or locked by another transaction (sweeps come again). `flow.lock` waits."""
        found, [(now,)] = db.read(cls.locking(session_id, "SKIP LOCKED"), NOW)
        return found[0].begin(db, now) if found else None

    @classmethod
    def locking(cls, session_id: str, how: str = "") -> "Query[Session]":
        """The query that locks a session. Read the clock behind it. `how`: `SKIP LOCKED`, or empty to wait."""
        return select(cls, f"WHERE id = %(id)s FOR NO KEY UPDATE {how}", id=session_id)

    def begin(self, db: Db, now: datetime) -> "Session":
        """Start to collect what the transaction appends, at the time `now`. Once in a transaction."""
        assert self not in db.appends, f"session {self.id} is locked already"
        self.now = now
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
        Delivery.cause(db, *(Caused(*caused) for event in events for caused in caused_by(event.type, event.body, self.id)))

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
        if status != self.status:
            states.check("session", self.status, status)
            self.status = status

    def run_again(self, db: Db) -> None:
        """Running, with its event if it was not."""
        if self.status != "running":
            self.become("running")
            self.emit(db, "session.status_running", {})

    def rest_again(self, db: Db) -> None:
        """It waits still: say so again, as idle comes last."""
        self.emit(db, "session.status_idle", {"stop_reason": self.stop_reason})

    def count(self, usage: dict[str, int]) -> None:
        """Add a reply's tokens."""
        self.usage = {k: self.usage.get(k, 0) + usage.get(k, 0) for k in USAGE}

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


def streamed(db: Db, session_id: str, principal_id: str, seq: int, *, ended: bool) -> None:
    """Record that the principal is streamed the `session.status_idle` or `session.status_terminated` event `seq`.

    `ended`: the run is over, so the principal's next stream begins at the newest event; else the next stream begins behind `seq`.
    No-op if the principal sent nothing in this run, or sent something after `seq`.
    """
    db.write(_RUN_ENDED if ended else _RUN_WAITS, id=session_id, principal=principal_id, seq=seq)


_SENT_BEFORE = "WHERE id = %(id)s AND (stream_positions ->> %(principal)s)::bigint < %(seq)s"
_RUN_ENDED = f"UPDATE session SET stream_positions = stream_positions - %(principal)s::text {_SENT_BEFORE}"  # noqa: S608 - our own names
_RUN_WAITS = f"""
    UPDATE session SET stream_positions = stream_positions || jsonb_build_object(%(principal)s::text, %(seq)s::bigint)
    {_SENT_BEFORE}
"""  # noqa: S608 - our own names
