"""Workers on both kinds of pool send the events that Flower shows: for every task, soon after each step."""

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
def test_each_task_has_an_event_when_it_is_received_started_and_done(
    database_urls: object, clean_redis: str, tmp_path: Path, pool: str
) -> None:
    """Also the last tasks, whose events no later event flushes."""
    task_ids: defaultdict[str, set[str]] = defaultdict(set)

    def keep(event: dict[str, Any]) -> None:
        task_ids[event["type"]].add(event["uuid"])

    worker = patched_early(WORKER) if pool == "gevent" else WORKER
    command = [*worker, "-P", pool, "-c", CONCURRENCY[pool], "-Q", "sweeps"]
    with running(command, {"REDIS_URL": clean_redis}, tmp_path / "log") as process, app.connection(clean_redis) as connection:
        process.wait_for_output(r"\S+@\S+ ready\.")
        receiver = app.events.Receiver(connection, handlers=dict.fromkeys(KINDS, keep))
        with receiver.consumer_context(wakeup=False) as (listening, *_):
            sent: set[str] = set()

            def all_arrived() -> bool:
                with contextlib.suppress(TimeoutError):
                    listening.drain_events(timeout=0.2)
                return all(task_ids[kind] == sent for kind in KINDS)

            all_arrived()  # the first call subscribes
            producer = app.amqp.Producer(connection)
            sent |= {app.send_task("sweep.expire_calls", producer=producer).id for _ in range(TASKS)}
            wait_for("all events arrive", all_arrived)
