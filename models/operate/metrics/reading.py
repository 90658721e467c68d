"""Reads the metrics of all workspaces: one query, for a key with the scope `metrics`."""

from typing import NamedTuple

from models.database.transactions import transaction
from models.pure.key_secret import sha256
from models.settings import settings

MOST = 10_000
"""Rows that the states of a queue, or of a workspace's approvals, count at most: more would make each request slower.

Beyond ten workspaces, each has its share of ten times as many."""


class Sample(NamedTuple):
    """One value of a metric. A histogram's `_bucket` counts the values between its bound `le` and the bound before."""

    name: str
    labels: dict[str, str]
    value: float


def read(secret: str) -> list[Sample]:
    """Return the sums and the present states. `secret` is an API key with the scope `metrics`; for any other there are none."""
    values = {"secret": sha256(secret), "workspaces": settings().metrics_workspaces, "rows": MOST}
    with transaction() as db:
        return [Sample(*row) for row in db.rows(_READ, **values)]


_READ = "SELECT name, labels, value FROM assent_read_metrics(%(secret)s, %(workspaces)s, %(rows)s)"
