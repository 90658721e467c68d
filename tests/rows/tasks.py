"""Tasks as a worker runs them."""

from typing import Any

from celery import Task
from celery.exceptions import Retry

from models.database.rows import Db
from models.outbox import claims
from models.outbox.delivery import Delivery
from workers.outcome import FAILURES


def work(task: Task, *args: Any) -> str:
    """Do what a worker does with a hint. Returns the outcome's words, whether Flower shows a success, a failure or a retry."""
    try:
        return str(task(*args))
    except (*FAILURES, Retry) as outcome:
        return str(outcome)


def claim_delivery(db: Db, delivery_id: str, task: str | None = None) -> Delivery | None:
    """Claim a delivery as the task `deliver.send` does. Returns None if its endpoint must not get it now."""
    due = claims.due(db, delivery_id)
    if due is None:
        return None
    due.claim(db, task)
    return due.delivery
