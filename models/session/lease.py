"""Leases: the right to work on a row for a while. One statement renews or looks at all that a process holds.

Both go over all workspaces, so functions of the database do them: a row is found by its id and fence together, and nothing but
`lease_until` is written.
"""

from collections.abc import Iterable
from datetime import timedelta

from models.database.transactions import transaction
from models.settings import settings

_RENEW = """
    SELECT id, cancelled FROM assent_renew_leases(CAST(%(ids)s AS text[]), CAST(%(fences)s AS bigint[]), %(duration)s)
"""
_LOOK = "SELECT id, cancelled FROM assent_held_leases(CAST(%(ids)s AS text[]), CAST(%(fences)s AS bigint[]))"


def renew(held: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """Renew all `held` (id, fence) pairs. Returns what is still held: id -> whether a cancel was asked for."""
    return _ask(_RENEW, held, {"duration": timedelta(seconds=settings().lease_seconds)})


def look(held: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """The same, without renewing."""
    return _ask(_LOOK, held, {})


def _ask(sql: str, held: Iterable[tuple[str, int]], more: dict[str, object]) -> dict[str, bool]:
    pairs = list(held)
    with transaction() as db:
        rows = db.rows(sql, ids=[row_id for row_id, _ in pairs], fences=[fence for _, fence in pairs], **more)
        return dict(rows)
