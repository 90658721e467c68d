"""Halts: the kill switch of a workspace. While one is open, no turn, no tool call and no delivery to a client begins.

A transaction that begins something asks `is_halted`, which holds a shared lock until the transaction ends. `start` takes the same
lock exclusively. So when `start` has committed, whatever began before has committed too, and nothing begins after.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.clock import STARTED
from models.database.columns import Mapped, mapped_column
from models.database.exchange import Statement
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.errors import Conflict

_LOCK = "hashtextextended('halt ' || current_setting('assent.workspace'), 0)"
_OPEN = "WHERE workspace_id = current_setting('assent.workspace') AND ended_at IS NULL"
_NEWEST = "WHERE workspace_id = current_setting('assent.workspace') ORDER BY started_at DESC LIMIT 1"
_AFTER = "workspace_id = current_setting('assent.workspace') AND (ended_at IS NULL OR ended_at > {since})"
_SINCE = f"WHERE {_AFTER.format(since='%(since)s')} ORDER BY started_at"


OPEN_HALT = (
    Statement(f"SELECT pg_advisory_xact_lock_shared({_LOCK})", {}),
    Statement(f"SELECT FROM halt {_OPEN}", {}),
)
"""The statements of `is_halted`. The second one's rows are the open halt. They can share a round trip with other statements."""


class Halt(Base):
    """One halt. The workspace is halted until `ended_at` is set."""

    __tablename__ = "halt"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    reason: Mapped[str | None]
    started_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    started_by: Mapped[str]
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    ended_by: Mapped[str | None]
    settled_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """The time at which the last deadline that the halt moves was moved."""
    backup_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """The time of the backup from which the installation was restored. Then only `assent restore --resume` ends the halt."""
    doubts_calls: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    """True if calls that were not settled in the backup may have run after it."""
    restored_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """The time at which all these calls had become `unknown`, and the audit had the act `workspace.restored`."""

    __table_args__ = (
        sa.Index("halt_open", "workspace_id", unique=True, postgresql_where=sa.text("ended_at IS NULL")),
        sa.Index("halt_newest", "workspace_id", "started_at"),
        sa.Index("halt_unsettled", "ended_at", postgresql_where=sa.text("ended_at IS NOT NULL AND settled_at IS NULL")),
    )

    @classmethod
    def current(cls, db: Db) -> "Halt | None":
        """Return the open halt of the transaction's workspace, or None."""
        return db.first(cls, _OPEN)

    @classmethod
    def newest(cls, db: Db) -> "Halt | None":
        """Return the open halt, else the last one; None without any."""
        return db.first(cls, _NEWEST)

    @classmethod
    def since(cls, db: Db, since: datetime) -> "list[Halt]":
        """Return the halts that ended after `since`, in their order, and the open one."""
        return db.find(cls, _SINCE, since=since)

    @classmethod
    def start(cls, db: Db, principal: Principal, reason: str | None) -> "Halt":
        """Halt the workspace. Idempotent: returns the open halt where there is one, unchanged."""
        db.rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if halt := cls.current(db):
            return halt
        halt = cls(
            id=ids.new("halt"),
            workspace_id=principal.workspace_id,
            reason=reason,
            started_at=clock.now(db),
            started_by=str(principal),
        )
        db.insert(halt)
        acts.record(db, principal, "workspace.halted", halt.id, {"reason": Text(reason)} if reason else {})
        return halt

    @classmethod
    def end(cls, db: Db, principal: Principal) -> "Halt | None":
        """End the open halt, and hint the sweep that moves deadlines. Idempotent. Returns the newest halt; None without any.

        Raises Conflict for the halt of a restored installation.
        """
        db.rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if halt := cls.current(db):
            if halt.backup_at:
                raise Conflict("The installation was restored from a backup: `assent restore --resume` ends its halts.")
            halt.ended_at, halt.ended_by = clock.now(db), str(principal)
            acts.record(db, principal, "workspace.resumed", halt.id, {"seconds": halt.length.total_seconds()})
            outbox(db).hints.append(Hint("sweep.end_halts", ()))
        return halt or cls.newest(db)

    @property
    def length(self) -> timedelta:
        """The length of an ended halt."""
        assert self.ended_at, "the halt has ended"
        return self.ended_at - self.started_at

    def stops(self, since: datetime, now: datetime) -> timedelta:
        """Return for how long, up to `now`, this halt has stopped the clock of a deadline that runs since `since`."""
        return max((self.ended_at or now) - max(self.started_at, since), timedelta(0))


def have_passed(db: Db, deadlines: Iterable[tuple[datetime, datetime]], now: datetime) -> list[bool]:
    """Return for each deadline whether it has passed at `now`. A deadline is its time, and the time since when it runs.

    This and `passed_sql` are the only definitions of a passed deadline: the clock stands still while the workspace is halted.
    """
    pairs = list(deadlines)
    late = [since for at, since in pairs if at <= now]
    halts = Halt.since(db, min(late)) if late else []
    return [_add_halts(at, since, halts, now) <= now for at, since in pairs]


def deadline_after_halts(db: Db, at: datetime, since: datetime, now: datetime) -> datetime:
    """Return the time of a deadline that runs since `since`, moved by every halt up to `now`."""
    return _add_halts(at, since, Halt.since(db, since), now)


def _add_halts(at: datetime, since: datetime, halts: Iterable[Halt], now: datetime) -> datetime:
    return at + sum((halt.stops(since, now) for halt in halts), timedelta(0))


def passed_sql(at: str, since: str) -> str:
    """Return SQL that is true once the deadline in column `at`, which runs since `since`, has passed: as `have_passed` says.

    The first comparison alone can use an index.
    """
    stopped = f"""
        SELECT COALESCE(SUM(GREATEST(COALESCE(ended_at, {STARTED}) - GREATEST(started_at, {since}), INTERVAL '0')), INTERVAL '0')
        FROM halt WHERE halt.{_AFTER.format(since=since)}
    """  # noqa: S608 - names of our own
    return f"({at} <= {STARTED} AND {at} + ({stopped}) <= {STARTED})"


def is_halted(db: Db) -> bool:
    """True if nothing may begin. If False, nobody can halt the workspace before the transaction ends."""
    _, halts = db.read(*OPEN_HALT)
    return bool(halts)
