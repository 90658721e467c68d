"""Web processes and workers pause the garbage collector while they load their modules, and no longer."""

import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
from celery.signals import celeryd_init, worker_before_create_process, worker_ready

import workers.celery  # noqa: F401 - connects its receivers
from api import serving

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
    """Send Celery's first and last signal of a start."""
    celeryd_init.send(sender=None)
    assert not gc.isenabled(), "tasks load now"
    worker_ready.send(sender=None)


def start_pool() -> None:
    """Send the signals of a start until the first process of a pool is forked."""
    celeryd_init.send(sender=None)
    worker_before_create_process.send(sender=None)


@pytest.mark.parametrize("start", [start_web, start_worker, start_pool])
def test_the_collector_runs_again_once_a_process_has_loaded(start: Callable[[], None]) -> None:
    objects = gc.get_freeze_count()
    try:
        start()
        assert gc.isenabled()
        assert gc.get_freeze_count() > objects
    finally:
        gc.enable()
