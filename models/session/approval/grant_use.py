"""The uses of grants that any number of sessions may use at once: a row each, which a sweep adds to the grant's row.

So nobody who uses a grant waits for others, nor passes the versions of its row, which a snapshot that is held for long keeps.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base

BATCH = 5000
"""Most uses that one transaction sums."""


class GrantUse(Base):
    """One use that the grant's row does not count yet."""

    __tablename__ = "grant_use"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    grant_id: Mapped[str] = mapped_column(sa.ForeignKey("approval_grant.id", ondelete="CASCADE"))
    used_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("grant_use_of_grant", "grant_id"), sa.Index("grant_use_of_workspace", "workspace_id"))


class Uses(NamedTuple):
    """How many calls a grant has allowed, and when it last did."""

    calls: int
    last_at: datetime | None


def uses_of(db: Db, grant_ids: Sequence[str]) -> dict[str, Uses]:
    """Return the uses of each of these grants, by its id: none of a grant that was deleted meanwhile, with its session."""
    rows = db.rows(_USES, ids=list(grant_ids)) if grant_ids else []
    return {grant_id: Uses(calls, last_at) for grant_id, calls, last_at in rows}


def add_up(db: Db) -> int:
    """Add the next uses of the workspace to the rows of their grants. Returns how many; if it is BATCH, there may be more.

    The caller sees to it that nobody else does so meanwhile."""
    return int(db.value(_ADD_UP, limit=BATCH))


NEVER_USED = "uses = 0 AND NOT EXISTS (SELECT FROM grant_use WHERE grant_id = approval_grant.id)"
"""A condition on `approval_grant`."""
_USES = """
    SELECT given, coalesce(uses, 0) + count(grant_use.id)::int, greatest(last_used_at, max(used_at))
    FROM unnest(%(ids)s::text[]) given LEFT JOIN approval_grant ON id = given LEFT JOIN grant_use ON grant_id = given
    GROUP BY given, uses, last_used_at
"""
_ADD_UP = """
    WITH fresh AS (
        DELETE FROM grant_use WHERE id IN (
            SELECT id FROM grant_use WHERE workspace_id = current_setting('assent.workspace') LIMIT %(limit)s
        ) RETURNING grant_id, used_at
    ), part AS (
        SELECT grant_id, count(*) AS calls, max(used_at) AS last_at FROM fresh GROUP BY grant_id
    ), held AS (
        SELECT id FROM approval_grant WHERE id IN (SELECT grant_id FROM part) ORDER BY id FOR NO KEY UPDATE
    ), added AS (
        UPDATE approval_grant SET uses = uses + calls, last_used_at = greatest(last_used_at, last_at)
        FROM part JOIN held ON held.id = grant_id WHERE approval_grant.id = grant_id
    )
    SELECT count(*) FROM fresh
"""
