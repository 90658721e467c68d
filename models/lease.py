"""Leases: the right to work on a row for a while. One statement renews or looks at all that a process holds.

Both go over all workspaces, so functions of the database do them: a row is found by its id and fence together, and nothing but
`lease_until` is written.
"""

from collections.abc import Iterable
from datetime import timedelta

import sqlalchemy as sa

from models.db import transaction
from models.settings import settings

_RENEW = sa.text("SELECT id, cancelled FROM assent_renew_leases(CAST(:ids AS text[]), CAST(:fences AS bigint[]), :duration)")
_LOOK = sa.text("SELECT id, cancelled FROM assent_held_leases(CAST(:ids AS text[]), CAST(:fences AS bigint[]))")


def renew(held: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """Renew all `held` (id, fence) pairs. Returns what is still held: id -> whether a cancel was asked for."""
    return _ask(_RENEW, held, {"duration": timedelta(seconds=settings().lease_seconds)})


def look(held: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """The same, without renewing."""
    return _ask(_LOOK, held, {})


def _ask(statement: sa.TextClause, held: Iterable[tuple[str, int]], more: dict[str, object]) -> dict[str, bool]:
    pairs = list(held)
    with transaction() as db:
        rows = db.execute(statement, {"ids": [p[0] for p in pairs], "fences": [p[1] for p in pairs]} | more)
        return {row[0]: row[1] for row in rows}
