"""Claims: a worker takes the lease on the next delivery. No endpoint holds up another."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from models.database import clock
from models.database.exchange import Statement
from models.database.query import select
from models.database.rows import Db
from models.database.transactions import outbox
from models.outbox.delivery import LEASE, Delivery
from models.outbox.endpoint import Endpoint
from models.settings import settings

CANCELLED_AT_ONCE = 200
"""Deliveries of a disabled endpoint that one transaction cancels."""


class Claimed(NamedTuple):
    """A delivery whose lease the caller holds, and its endpoint."""

    delivery: Delivery
    endpoint: Endpoint
    is_probe: bool
    """True if the endpoint gets no other delivery until this attempt shows that the endpoint answers."""


MaySend = Callable[[Endpoint], bool]
"""Returns True if the process has room for a request to this endpoint. Called once per claim, before the lease is taken."""


def claim(db: Db, delivery_id: str, may_send: MaySend = lambda _endpoint: True, task: str | None = None) -> Claimed | None:
    """Take the lease on a due delivery and return it. None if it is not due, or its endpoint is busy, paused or disabled.

    `claim_next` comes to a delivery of a busy endpoint later. `task`: the worker's task, for Flower.
    """
    row = db.first(Delivery, "WHERE id = %(id)s AND status = 'queued' FOR NO KEY UPDATE SKIP LOCKED", id=delivery_id)
    return _take(db, row, may_send, task) if row is not None else None


def claim_next(db: Db, endpoint_id: str, may_send: MaySend, task: str | None = None) -> Claimed | None:
    """Take the lease on this endpoint's delivery that has been due longest, and return it. None as for `claim`."""
    rows = _next_due(db, endpoint_id, 1)
    return _take(db, rows[0], may_send, task) if rows else None


def hint_next(db: Db, endpoint_id: str, count: int = 1) -> None:
    """Send hints for this endpoint's deliveries that have been due longest."""
    for row in _next_due(db, endpoint_id, count):
        row.hinted_at = clock.now(db)
        outbox(db).hints.append(row.hint)


def _next_due(db: Db, endpoint_id: str, count: int) -> list[Delivery]:
    where = "WHERE endpoint_id = %(id)s AND status = 'queued' AND due_at <= assent_now() ORDER BY due_at, id LIMIT %(count)s"
    return db.find(Delivery, f"{where} FOR NO KEY UPDATE SKIP LOCKED", id=endpoint_id, count=count)


def _take(db: Db, row: Delivery, may_send: MaySend, task: str | None) -> Claimed | None:
    """Take the lease on a queued, locked row. The endpoint's lock makes the count of running deliveries exact."""
    locked = select(Endpoint, "WHERE id = %(id)s FOR NO KEY UPDATE", id=row.endpoint_id)
    # A lease with less time left belongs to a dead worker: the request has timed out.
    least_left = LEASE - timedelta(seconds=settings().webhook_seconds + 5)
    running = (
        "SELECT COUNT(*) FROM delivery WHERE endpoint_id = %(id)s AND status = 'running' AND lease_until > assent_now() + %(left)s"
    )
    values = {"id": row.endpoint_id, "left": least_left}
    endpoints, [(now,)], [(count,)] = db.read(locked, clock.NOW, Statement(running, values))
    if not endpoints:
        return None  # it was deleted, and a sweep removes its deliveries
    [endpoint] = endpoints
    if endpoint.state != "enabled":
        _cancel(db, endpoint.id, now)
        return None
    most, is_paused = endpoint.most_at_once(now), endpoint.paused_until is not None and endpoint.paused_until > now
    if row.due_at > now or is_paused or count >= most or not may_send(endpoint):
        return None
    db.move(row, "running", fence=row.fence + 1, attempt=row.attempt + 1, lease_until=now + LEASE, task=task)
    return Claimed(row, endpoint, is_probe=most == 1)


def _cancel(db: Db, endpoint_id: str, now: datetime) -> None:
    """Cancel queued deliveries of a disabled endpoint. A hint for one of the rest continues the work."""
    where = "WHERE endpoint_id = %(id)s AND status = 'queued' ORDER BY due_at LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED"
    rows = db.find(Delivery, where, id=endpoint_id, most=CANCELLED_AT_ONCE + 1)
    for row in rows[:CANCELLED_AT_ONCE]:
        db.move(row, "cancelled", ended_at=now)
    outbox(db).hints += [row.hint for row in rows[CANCELLED_AT_ONCE:]]
