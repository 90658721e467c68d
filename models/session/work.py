"""Work: the request of a session in a self-hosted environment for a worker. The SDK's `EnvironmentWorker` polls for work.

The worker serves the whole session: it runs the calls of the built-in tools and posts their results. A session has at most one
piece of work that is not stopped. Work that its worker does not renew in time, by the database's clock, is offered again.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database import ids
from models.database.clock import STARTED
from models.database.columns import Mapped, mapped_column
from models.database.leased import Lapsing
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, NotFound
from models.session.locked import Locked

_OF_ONE_OFFER = ("acknowledged_at", "started_at", "heartbeat_at", "heartbeat_before", "lease_until")
"""The columns that a new offer clears."""
PAUSE_SECONDS = 1.0
"""Pause between stopped work and the next offer, so that a worker that fails at once does not spin."""
_OFFERABLE = f"""
    SELECT id, session_id FROM work WHERE environment_id = %(environment)s AND status <> 'stopped' AND (
        (status = 'queued' AND due_at <= {STARTED})
        OR (status = 'starting' AND acknowledged_at IS NULL AND offered_at <= {STARTED} - %(reclaim)s)
        OR (status IN ('starting', 'active', 'stopping') AND lease_until <= {STARTED})
    ) ORDER BY due_at LIMIT 10
"""  # noqa: S608 - names of our own


class Work(Lapsing, Base):
    """One session to serve. The states are in `models.pure.states.WORK`."""

    __tablename__ = "work"
    HELD = ("starting", "active", "stopping")

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    environment_id: Mapped[str]
    session_id: Mapped[str]
    status: Mapped[str] = mapped_column(default="queued")
    metadata_: Mapped[dict[str, str]] = mapped_column("metadata", JSONB)
    worker: Mapped[str | None]
    """The worker's own name. Set by each offer."""
    lease_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    due_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    offered_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    acknowledged_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    started_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    heartbeat_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Time of the last heartbeat. A worker must send it with the next heartbeat, so that two workers never hold the same work."""
    heartbeat_before: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Time of the heartbeat before the last one, which a retry of the last one names."""
    stop_requested_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    stopped_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("work_newest", "environment_id", "created_at", "id"),
        sa.Index("work_of_session", "session_id"),
        sa.Index("work_one_at_a_time", "session_id", unique=True, postgresql_where=sa.text("status <> 'stopped'")),
        sa.Index("work_waiting", "environment_id", "due_at", postgresql_where=sa.text("status <> 'stopped'")),
    )

    @classmethod
    def want(cls, locked: Locked, after: float = 0.0) -> None:
        """Insert work for a session in a self-hosted environment, due in `after` seconds. No-op if the session has work already."""
        session = locked.session
        if not session.self_hosted or cls.current(locked.db, session.id) is not None:
            return
        work = cls(
            id=ids.new("work"),
            workspace_id=session.workspace_id,
            environment_id=session.environment_id,
            session_id=session.id,
            metadata_={},
            due_at=locked.now + timedelta(seconds=after),
            created_at=locked.now,
        )
        locked.db.insert(work)

    @classmethod
    def current(cls, db: Db, session_id: str) -> "Work | None":
        """Return the session's work that is not stopped, locked; None if there is none."""
        return db.first(cls, "WHERE session_id = %(session)s AND status <> 'stopped' FOR NO KEY UPDATE", session=session_id)

    @classmethod
    def lock(cls, db: Db, environment_id: str, work_id: str) -> "Work":
        """Return the work of an environment, locked. Raises NotFound."""
        work = db.get(cls, work_id, lock=True)
        if work is None or work.environment_id != environment_id:
            raise NotFound("work", work_id)
        return work

    @classmethod
    def waiting(cls, db: Db, environment_id: str, reclaim_seconds: float) -> list[tuple[str, str]]:
        """Return work that can be offered now, longest waiting first, as `(work id, session id)`. Locks nothing."""
        reclaim = timedelta(seconds=reclaim_seconds)
        return [(work_id, session_id) for work_id, session_id in db.rows(_OFFERABLE, environment=environment_id, reclaim=reclaim)]

    def is_waiting(self, now: datetime, reclaim_seconds: float) -> bool:
        """True if this work can be offered now: the condition of `waiting`, for a locked row."""
        if self.status == "queued":
            return self.due_at <= now
        if self.status == "starting" and self.acknowledged_at is None and self.offered_at:
            return self.is_lapsed(now) or self.offered_at <= now - timedelta(seconds=reclaim_seconds)
        return self.is_lapsed(now)

    def offer(self, db: Db, now: datetime, worker: str, ttl: float) -> None:
        """Offer the work to a worker that polled. A worker that had it before learns of the loss by its next heartbeat."""
        if self.status != "queued":
            db.move(self, "queued", **dict.fromkeys(_OF_ONE_OFFER))
        db.move(self, "starting", worker=worker, offered_at=now, lease_until=now + timedelta(seconds=ttl))

    def acknowledge(self, now: datetime, ttl: float) -> None:
        """Record that the worker received the work. Idempotent. Raises Conflict if the work is queued or stopped."""
        if self.status in {"queued", "stopped"}:
            raise Conflict(f"Work {self.id} is {self.status}: poll for work again.", {"state": self.status})
        if self.acknowledged_at is None:
            self.acknowledged_at = now
            self.lease_until = now + timedelta(seconds=ttl)

    def beat(self, db: Db, now: datetime, ttl: float) -> bool:
        """Extend the lease of the worker that holds the work. Returns False if the worker should end, or never had the work."""
        if self.status not in {"starting", "active"}:
            return False
        if self.status == "starting":
            db.move(self, "active", started_at=now, acknowledged_at=self.acknowledged_at or now)
        self.heartbeat_before, self.heartbeat_at = self.heartbeat_at, now
        self.lease_until = now + timedelta(seconds=ttl)
        return True

    def ask_to_stop(self, db: Db, now: datetime) -> None:
        """Have the worker end: its next heartbeat says so. Idempotent."""
        if self.status != "stopping":
            db.move(self, "stopping", stop_requested_at=now)

    def stop(self, db: Db, now: datetime) -> None:
        """End the work."""
        db.move(self, "stopped", stop_requested_at=self.stop_requested_at or now, stopped_at=now, lease_until=None)
