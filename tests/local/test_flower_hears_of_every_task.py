"""What Flower shows comes from the workers' events: of every task, on both kinds of pool, soon after it happened."""

import contextlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from crashes.processes import WORKER, patched_early, running, wait_for

from workers.celery import app

TASKS = 40
KINDS = ("task-received", "task-started", "task-succeeded")


CONCURRENCY = {"gevent": "50", "prefork": "2"}


@pytest.mark.parametrize("pool", CONCURRENCY)
def test_each_task_is_told_of_when_it_comes_begins_and_ends(
    database_urls: object, clean_redis: str, tmp_path: Path, pool: str
) -> None:
    """Among them the last ones, behind which nothing more comes to say."""
    told: defaultdict[str, set[str]] = defaultdict(set)

    def hear(event: dict[str, Any]) -> None:
        told[event["type"]].add(event["uuid"])

    worker = patched_early(WORKER) if pool == "gevent" else WORKER
    words = [*worker, "-P", pool, "-c", CONCURRENCY[pool], "-Q", "sweeps"]
    with running(words, {"REDIS_URL": clean_redis}, tmp_path / "log") as process, app.connection(clean_redis) as connection:
        process.said(r"\S+@\S+ ready\.")
        receiver = app.events.Receiver(connection, handlers=dict.fromkeys(KINDS, hear))
        with receiver.consumer_context(wakeup=False) as (listening, *_):
            sent: set[str] = set()

            def heard() -> bool:
                with contextlib.suppress(TimeoutError):
                    listening.drain_events(timeout=0.2)
                return all(told[kind] == sent for kind in KINDS)

            heard()  # it subscribes when it first listens
            producer = app.amqp.Producer(connection)
            sent |= {app.send_task("sweep.expire_calls", producer=producer).id for _ in range(TASKS)}
            wait_for("all of it is told", heard)
