"""Lists as the SDK's `SyncPage` reads them: `after_id`, `before_id`, newest first."""

from collections.abc import Sequence
from typing import TypeVar

from api.paging import Selection
from api.requests.people import Listed
from models.database.rows import Db
from models.errors import Invalid
from models.people.roles import ROLES, wire_role

R = TypeVar("R")


def rows_of(db: Db, matching: Selection[R], query: Listed, column: str) -> tuple[Sequence[R], bool]:
    """Return a page of rows by a unique column, newest first, and whether there are more in this direction. Raises Invalid."""
    if query.after_id and query.before_id:
        raise Invalid("before_id", "cannot be given together with after_id.")
    if query.roles:
        roles = [role for role in ROLES if wire_role(role) in query.roles]
        matching = matching.where("role = ANY(%(roles)s)", roles=roles)
    if query.after_id:
        matching = matching.where(f"{column} < %(after)s", after=query.after_id)
    if query.before_id:
        matching = matching.where(f"{column} > %(before)s", before=query.before_id)
    order = "ASC" if query.before_id else "DESC"
    rows = matching.select(db, f"ORDER BY {column} {order} LIMIT %(limit)s", limit=query.limit + 1)
    has_more, rows = len(rows) > query.limit, rows[: query.limit]
    return (rows[::-1] if query.before_id else rows), has_more
