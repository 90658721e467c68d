"""Rows with a lease: workers claim them, and the fence in every later write refuses a worker that lost the lease.

queued ──▶ held by a worker ──▶ ended, or queued again for another attempt
                   └─ the lease lapses: a sweep queues the row again, or ends it
"""

from datetime import datetime
from typing import Any, ClassVar, Self

from models.database.columns import Mapped
from models.database.rows import Db, Stale
from models.database.tables import table_of


class Lapsing:
    """A row that one worker at a time holds until a time. The table declares the columns."""

    HELD: ClassVar[tuple[str, ...]] = ("running",)
    """The statuses in which a worker holds the row."""

    status: Mapped[str]
    lease_until: Mapped[datetime | None]

    def is_lapsed(self, now: datetime) -> bool:
        """True if the row's worker no longer renews its lease."""
        return self.status in self.HELD and self.lease_until is not None and self.lease_until <= now


class Leased(Lapsing):
    """A row that workers attempt one after the other. The table declares the columns."""

    id: Mapped[str]
    fence: Mapped[int]
    attempt: Mapped[int]
    task: Mapped[str | None]
    """The task that took the lease, for Flower: `ID WORKER`."""
    due_at: Mapped[datetime]
    hinted_at: Mapped[datetime | None]

    def as_held(self, db: Db, *, lock: bool = False) -> Self:
        """Return a worker's row as this transaction has it. Raises Stale if another worker claimed it, or its work has ended."""
        row = db.get(type(self), self.id, lock=lock)
        if row is None or row.status != "running" or row.fence != self.fence:
            raise Stale(f"{table_of(type(self)).name} {self.id} is no longer held by fence {self.fence}")
        return row

    def is_unheld(self, now: datetime) -> bool:
        """True if no worker holds the row and its work has not ended: it is queued, or its lease has lapsed."""
        return self.status == "queued" or self.is_lapsed(now)

    def take_lease(self, db: Db, until: datetime, task: str | None, **columns: Any) -> None:
        """Begin the next attempt. `task`: the worker's task, for Flower. `columns` are the table's own."""
        db.move(self, "running", fence=self.fence + 1, attempt=self.attempt + 1, lease_until=until, task=task, **columns)

    def requeue(self, db: Db, due_at: datetime, *, hinted_at: datetime | None = None, **columns: Any) -> None:
        """End the attempt, if there is one, and queue the row. Without `hinted_at`, a sweep sends the hint once the row is due."""
        self.end_lease(db, "queued", due_at=due_at, hinted_at=hinted_at, **columns)

    def postpone(self, due_at: datetime) -> None:
        """Have workers leave the queued row alone until then. A sweep sends the hint."""
        self.due_at, self.hinted_at = due_at, None

    def end_lease(self, db: Db, status: str, **columns: Any) -> None:
        """Move to a status in which no worker holds the row."""
        db.move(self, status, lease_until=None, **columns)
