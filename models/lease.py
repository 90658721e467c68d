"""Leases: the right to work on a row for a while. One statement renews or looks at all that a process holds.

Both run as `assent_system`, over all workspaces: rows are found by id and fence, and nothing but `lease_until` is written.
"""

from collections.abc import Iterable
from datetime import timedelta

import sqlalchemy as sa

from models.db import transaction
from models.settings import settings

_HELD = "SELECT * FROM unnest(CAST(:ids AS text[]), CAST(:fences AS bigint[]))"
_MINE = f"status = 'running' AND (id, fence) IN ({_HELD})"
_RENEW = sa.text(f"""
    WITH turns AS (UPDATE turn SET lease_until = assent_now() + :lease WHERE {_MINE} RETURNING id, false),
         calls AS (UPDATE tool_call SET lease_until = assent_now() + :lease WHERE {_MINE}
                   RETURNING id, cancel_requested_at IS NOT NULL)
    SELECT * FROM turns UNION ALL SELECT * FROM calls
""")  # noqa: S608 - the condition is a constant of ours
_LOOK = sa.text(f"""
    SELECT id, false FROM turn WHERE {_MINE} UNION ALL SELECT id, cancel_requested_at IS NOT NULL FROM tool_call WHERE {_MINE}
""")  # noqa: S608


def renew(held: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """Renew all `held` (id, fence) pairs. Returns what is still held: id -> whether a cancel was asked for."""
    return _ask(_RENEW, held, {"lease": timedelta(seconds=settings().lease_seconds)})


def look(held: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """The same, without renewing."""
    return _ask(_LOOK, held, {})


def _ask(statement: sa.TextClause, held: Iterable[tuple[str, int]], more: dict[str, object]) -> dict[str, bool]:
    pairs = list(held)
    with transaction(role="system") as db:
        rows = db.execute(statement, {"ids": [p[0] for p in pairs], "fences": [p[1] for p in pairs]} | more)
        return {row[0]: row[1] for row in rows}
