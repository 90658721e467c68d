"""Rows with a lease: workers claim them, and the fence in every later write refuses a worker that lost the lease."""

from datetime import datetime
from typing import Self

from sqlalchemy.orm import Mapped

from models.database.rows import Db, Stale
from models.database.tables import table_of


class Leased:
    """The lease of a table's rows. The table declares the columns."""

    status: Mapped[str]
    fence: Mapped[int]
    lease_until: Mapped[datetime | None]
    task: Mapped[str | None]
    """The task that took the lease, for Flower: `ID WORKER`."""

    def is_lapsed(self, now: datetime) -> bool:
        """True if the row's worker no longer renews its lease."""
        return self.status == "running" and self.lease_until is not None and self.lease_until <= now

    @classmethod
    def held(cls, db: Db, row_id: str, fence: int, *, lock: bool = False) -> Self:
        """Return the row that this fence still holds. Raises Stale if another worker claimed it, or its work has ended."""
        row = db.get(cls, row_id, lock=lock)
        if row is None or row.status != "running" or row.fence != fence:
            raise Stale(f"{table_of(cls).name} {row_id} is no longer held by fence {fence}")
        return row
