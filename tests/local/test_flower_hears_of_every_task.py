"""Workers on both kinds of pool send the events that Flower shows: for every task, soon after each step.

Sweeps that have nothing to do send none, so that they do not hide the work.
"""

import contextlib
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from crashes.processes import WORKER, patched_early, running, wait_for
from own_database import Clock, DatabaseUrls
from rows.stage import QUOTE, Stage
from rows.tasks import claim_delivery

from models.database.transactions import transaction
from models.flow.run.turns import queued_turn
from models.notices import recipients as notifying
from models.notices.channel import Channel, NewChannel
from models.notices.notification import Notification
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
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
            sent |= {app.send_task("sweep.report", producer=producer).id for _ in range(TASKS)}
            wait_for("all events arrive", all_arrived)


def test_a_sweep_is_seen_only_if_it_did_something_or_failed(
    stage: Stage, database_urls: DatabaseUrls, clock: Clock, clean_redis: str, tmp_path: Path
) -> None:
    """Another task says in each minute how many sweeps ran. A lost worker's task does not stay STARTED."""
    stage.propose(stage.session(approval={"seconds": 60}))
    session_id = stage.session()
    stage.message(session_id)
    turn_id = stage.thread(session_id).turn_id or ""
    with transaction(stage.workspace_id) as db:
        queued = queued_turn(db, session_id, turn_id)
        assert queued
        assert queued.claim("a worker that dies", QUOTE, "a-lost-turn turns@gone")
        endpoint, _ = Endpoint.create(
            db, stage.principal, NewEndpoint(url="https://example.com", enabled_events=["session.created"])
        )
        assert claim_delivery(db, Delivery.test(db, endpoint, "session.created").id, task="a-lost-delivery deliver@gone")
        channel = Channel.create(db, stage.principal, NewChannel(person_id=None, kind="operator", address="ops"))
        assert notifying.prepare(db, Notification.test(db, channel).id, "a-lost-notification deliver@gone")
    clock.advance(100_000)
    events: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    command = [*patched_early(WORKER), "-P", "gevent", "-c", "1", "-Q", "sweeps"]
    with running(command, {"REDIS_URL": clean_redis}, tmp_path / "log") as process, app.connection(clean_redis) as connection:
        process.wait_for_output(r"\S+@\S+ ready\.")
        receiver = app.events.Receiver(connection, handlers={"*": lambda event: events[event.get("uuid")].append(event)})
        with receiver.consumer_context(wakeup=False) as (listening, *_):

            def next_event() -> None:
                with contextlib.suppress(TimeoutError):
                    listening.drain_events(timeout=0.2)

            next_event()  # subscribes
            producer = app.amqp.Producer(connection)
            names = ("expire_calls", "expire_approvals", "expire_approvals", "release_granted", "rescue", "report")
            bad = {"release_granted": ["grant_1", "wrkspc_1", "one argument too many"]}
            quiet, acted, late, failed, rescue, report = (
                app.send_task(f"sweep.{name}", bad.get(name, []), producer=producer).id for name in names
            )

            def all_arrived() -> bool:
                next_event()
                return len(events[report]) == 3

            wait_for("the report arrives", all_arrived)
    assert [event["type"] for event in events[acted]] == [*KINDS]
    assert (events[acted][0]["name"], events[acted][2]["result"]) == ("sweep.expire_approvals", "'expired 1'")
    assert [event["type"] for event in events[failed]] == [*KINDS[:2], "task-failed"]
    assert events[rescue][2]["result"] == "'took back 3'"
    for task in ("turn", "delivery", "notification"):
        [lost] = events[f"a-lost-{task}"]
        assert (lost["type"], lost["exception"]) == ("task-failed", "Failed('lost: its worker died, or was cut off')")
        assert lost["hostname"].endswith("@gone"), "the failure of the dead worker, not of the sweeps"
    assert not events[quiet]
    assert not events[late]
    assert re.fullmatch(r"'5 sweeps in \d+ s, 2 with something to do, 1 failed'", events[report][2]["result"])
