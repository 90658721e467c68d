"""Web processes and workers pause the garbage collector while they load their modules, and no longer."""

import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest

from api import serving
from workers import celery

LOGGERS = ("gunicorn.error", "gunicorn.access")


def start_web() -> None:
    """Run gunicorn's hooks of a new process, in order. Keeps this process's loggers as they are."""
    serving.post_fork(None, None)
    assert not gc.isenabled(), "modules load now"
    filters: dict[str, list[Any]] = {name: list(logging.getLogger(name).filters) for name in LOGGERS}
    serving.post_worker_init(None)
    for name in LOGGERS:
        logging.getLogger(name).filters = filters[name]


def start_worker() -> None:
    """Run the receivers of Celery's first and last signal of a start."""
    celery.pause_garbage_collection()
    assert not gc.isenabled(), "tasks load now"
    celery.freeze_imports()


@pytest.mark.parametrize("start", [start_web, start_worker])
def test_the_collector_runs_again_once_a_process_has_loaded(start: Callable[[], None]) -> None:
    try:
        start()
        assert gc.isenabled()
    finally:
        gc.enable()
