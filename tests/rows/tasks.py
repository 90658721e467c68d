"""Tasks as a worker runs them."""

from typing import Any

from celery import Task
from celery.exceptions import Retry

from workers.outcome import FAILURES


def work(task: Task, *args: Any) -> str:
    """Do what a worker does with a hint. Returns the outcome's words, whether Flower shows a success, a failure or a retry."""
    try:
        return str(task(*args))
    except (*FAILURES, Retry) as outcome:
        return str(outcome)
