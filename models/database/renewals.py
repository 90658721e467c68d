"""Leases: the right to work on a row for a while. One statement renews or reads all leases of a process.

The leases belong to many workspaces, so functions of the database do both. They find a row by its id and fence together, and write
`lease_until` alone.
"""

from collections.abc import Iterable
from datetime import timedelta

from models.database.transactions import transaction
from models.settings import settings

_RENEW = """
    SELECT id, cancelled FROM assent_renew_leases(CAST(%(ids)s AS text[]), CAST(%(fences)s AS bigint[]), %(duration)s)
"""
_LOOK = "SELECT id, cancelled FROM assent_held_leases(CAST(%(ids)s AS text[]), CAST(%(fences)s AS bigint[]))"


def renew(leases: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """Renew the `leases`, which are pairs of an id and a fence. Returns `{id: True if a cancel was requested}` of those still
    held."""
    return _call(_RENEW, leases, duration=timedelta(seconds=settings().lease_seconds))


def look(leases: Iterable[tuple[str, int]]) -> dict[str, bool]:
    """Return the same as `renew`, without renewing."""
    return _call(_LOOK, leases)


def _call(sql: str, leases: Iterable[tuple[str, int]], **values: object) -> dict[str, bool]:
    pairs = list(leases)
    with transaction(reserved=True) as db:
        return dict(db.rows(sql, ids=[row_id for row_id, _ in pairs], fences=[fence for _, fence in pairs], **values))
