"""Claims: a worker takes the lease on the next delivery. No endpoint holds up another."""

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


class DueDelivery(NamedTuple):
    """A delivery that is due, locked with its endpoint, which may get it now."""

    delivery: Delivery
    endpoint: Endpoint
    now: datetime
    is_probe: bool
    """True if the endpoint gets no other delivery until this attempt shows that the endpoint responds."""

    def claim(self, db: Db, task: str | None = None) -> None:
        """Take the lease. `task`: the worker's task, for Flower."""
        self.delivery.take_lease(db, self.now + LEASE, task)


def due(db: Db, delivery_id: str) -> DueDelivery | None:
    """Return a delivery for a worker to claim. None if it is not due, or its endpoint is busy, paused or disabled.

    `next_due` comes to a delivery of a busy endpoint later.
    """
    row = db.first(Delivery, "WHERE id = %(id)s AND status = 'queued' FOR NO KEY UPDATE SKIP LOCKED", id=delivery_id)
    return _with_endpoint(db, row) if row is not None else None


def next_due(db: Db, endpoint_id: str) -> DueDelivery | None:
    """Return this endpoint's delivery that has been due longest, for a worker to claim. None as for `due`."""
    rows = _next_due(db, endpoint_id, 1)
    return _with_endpoint(db, rows[0]) if rows else None


def hint_next(db: Db, endpoint_id: str, count: int = 1) -> None:
    """Send hints for this endpoint's deliveries that have been due longest."""
    for row in _next_due(db, endpoint_id, count):
        row.hinted_at = clock.now(db)
        outbox(db).hints.append(row.hint)


def _next_due(db: Db, endpoint_id: str, count: int) -> list[Delivery]:
    where = "WHERE endpoint_id = %(id)s AND status = 'queued' AND due_at <= assent_now() ORDER BY due_at, id LIMIT %(count)s"
    return db.find(Delivery, f"{where} FOR NO KEY UPDATE SKIP LOCKED", id=endpoint_id, count=count)


def _with_endpoint(db: Db, row: Delivery) -> DueDelivery | None:
    """Lock the endpoint of a queued, locked row. The endpoint's lock makes the count of running deliveries exact."""
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
    if row.due_at > now or is_paused or count >= most:
        return None
    return DueDelivery(row, endpoint, now, is_probe=most == 1)


def _cancel(db: Db, endpoint_id: str, now: datetime) -> None:
    """Cancel queued deliveries of a disabled endpoint. A hint for one of the rest continues the work."""
    where = "WHERE endpoint_id = %(id)s AND status = 'queued' ORDER BY due_at LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED"
    rows = db.find(Delivery, where, id=endpoint_id, most=CANCELLED_AT_ONCE + 1)
    for row in rows[:CANCELLED_AT_ONCE]:
        db.move(row, "cancelled", ended_at=now)
    outbox(db).hints += [row.hint for row in rows[CANCELLED_AT_ONCE:]]
