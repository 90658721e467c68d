"""Claims: which delivery a worker sends next, so that no endpoint holds up another."""

from datetime import datetime
from typing import NamedTuple

from models.database import clock
from models.database.exchange import Statement
from models.database.query import select
from models.database.rows import Db
from models.database.transactions import outbox
from models.outbox.delivery import LEASE, Delivery
from models.outbox.endpoint import Endpoint

AT_ONCE = 10
"""Deliveries that one endpoint is sent at a time. A failing endpoint is sent one."""
CANCELLED_AT_ONCE = 200
"""Deliveries of a disabled endpoint that one transaction cancels."""


class Claimed(NamedTuple):
    """A delivery whose lease the caller has, and its endpoint."""

    delivery: Delivery
    endpoint: Endpoint


def claim(db: Db, delivery_id: str) -> Claimed | None:
    """Take the lease on a due delivery. None if there is nothing to send, or its endpoint is busy: `claim_next` comes to it."""
    row = db.first(Delivery, "WHERE id = %(id)s AND status = 'queued' FOR NO KEY UPDATE SKIP LOCKED", id=delivery_id)
    return _take(db, row) if row is not None else None


def claim_next(db: Db, endpoint_id: str) -> Claimed | None:
    """Take the lease on the delivery of this endpoint that is due for the longest time. None as for `claim`."""
    row = _next_due(db, endpoint_id)
    return _take(db, row) if row is not None else None


def hint_next(db: Db, endpoint_id: str) -> None:
    """Send a hint for the delivery of this endpoint that is due for the longest time."""
    row = _next_due(db, endpoint_id)
    if row is not None:
        row.hinted_at = clock.now(db)
        outbox(db).hints.append(row.hint)


def _next_due(db: Db, endpoint_id: str) -> Delivery | None:
    where = "WHERE endpoint_id = %(id)s AND status = 'queued' AND due_at <= assent_now() ORDER BY due_at, id LIMIT 1"
    return db.first(Delivery, f"{where} FOR NO KEY UPDATE SKIP LOCKED", id=endpoint_id)


def _take(db: Db, row: Delivery) -> Claimed | None:
    """Take the lease on a queued, locked row. The endpoint's lock makes the count of running deliveries exact."""
    locked = select(Endpoint, "WHERE id = %(id)s FOR NO KEY UPDATE", id=row.endpoint_id)
    running = "SELECT COUNT(*) FROM delivery WHERE endpoint_id = %(id)s AND status = 'running'"
    [endpoint], [(now,)], [(count,)] = db.read(locked, clock.NOW, Statement(running, {"id": row.endpoint_id}))
    if endpoint.state != "enabled":
        _cancel(db, endpoint.id, now)
        return None
    if row.due_at > now or count >= (1 if endpoint.failing_since else AT_ONCE):
        return None
    db.move(row, "running", fence=row.fence + 1, attempt=row.attempt + 1, lease_until=now + LEASE)
    return Claimed(row, endpoint)


def _cancel(db: Db, endpoint_id: str, now: datetime) -> None:
    """Cancel queued deliveries of a disabled endpoint. A hint brings a worker to the rest."""
    where = "WHERE endpoint_id = %(id)s AND status = 'queued' ORDER BY due_at LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED"
    rows = db.find(Delivery, where, id=endpoint_id, most=CANCELLED_AT_ONCE + 1)
    for row in rows[:CANCELLED_AT_ONCE]:
        db.move(row, "cancelled", ended_at=now)
    outbox(db).hints += [row.hint for row in rows[CANCELLED_AT_ONCE:]]
