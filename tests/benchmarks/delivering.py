"""The tools of the benchmark of deliveries: a receiver of webhooks, the processes that deliver, and the sender of events."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.house import ROOT, Servers, environment

from deploy.supervisor import Child, Supervisor
from models.outbox.endpoint import NewEndpoint

PATIENCE_SECONDS = 300
WORKER = "celery -A workers worker --without-gossip --without-mingle --loglevel warning"
PROCESSES = {
    "deliver": f"{WORKER} --include benchmarks.bare_delivery --hostname deliver@%h --pool threads --concurrency 40 -Q deliver",
    "sweeps": f"python -m gevent.monkey --module {WORKER} --hostname sweeps@%h --pool gevent --concurrency 10 --queues sweeps",
    "beat": "celery -A workers beat --scheduler workers.sweeps.scheduler:Scheduler --loglevel warning",
}


class Receiver:
    """Endpoints on loopback that answer at once. Once `is_dead` is set, `/dead` never answers. Keeps each first byte's time."""

    def __init__(self) -> None:
        self.arrived: dict[bytes, float] = {}
        self.is_dead = False
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(1)
        at = time.monotonic()
        head = first + await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        await reader.readexactly(int(fields[b"content-length"]))
        if self.is_dead and b" /dead " in head.split(b"\r\n")[0]:
            await asyncio.sleep(60)
        else:
            self.arrived.setdefault(fields[b"webhook-id"], at)
            writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        writer.close()

    def times(self, send: Callable[[], float], count: int) -> list[float]:
        """Send so many events. Returns the seconds from their commit, which `send` returns, to each first byte, in order."""
        before = len(self.arrived)
        began = send()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.arrived) < before + count:
            assert time.monotonic() < deadline, f"not all of {count} events arrived within {PATIENCE_SECONDS} s"
            time.sleep(0.01)  # the times are the receiver's
        return sorted(at - began for at in list(self.arrived.values())[before:])


@contextmanager
def workers(on: Servers) -> Iterator[None]:
    """Run the processes that deliver. This process writes rows and sends hints."""
    from models.database.encryption import new_keys

    private, public = new_keys()
    env = {
        **environment(on),
        "ASSENT_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
        "ASSENT_DELIVER_PUBLIC_KEY": public,
        "ASSENT_DELIVER_PRIVATE_KEYS": private,
    }
    os.environ |= {name: value for name, value in env.items() if name != "PATH"}
    supervisor = Supervisor(ROOT, output=(on.folder.path / "deliveries.log").open("w"))
    try:
        for name, line in PROCESSES.items():
            supervisor.start(Child(name, line, env))
        yield
    finally:
        supervisor.hurry.set()
        supervisor.stop()


class Bench:
    """A workspace with endpoints, and the sender of their events."""

    def __init__(self, receiver: Receiver) -> None:
        from rows.stage import Stage

        from models.outbox.webhook_events import EVENTS
        from workers import enqueue

        assert enqueue.publisher(), "importing it makes commits send hints"
        self.stage, self.receiver = Stage(), receiver
        self.types, self.bare_count = list(EVENTS), 0

    def endpoint(self, path: str = "/living") -> str:
        """Make an endpoint. Returns the type of its events, which no other endpoint gets."""
        from models.database.transactions import transaction
        from models.outbox.endpoint import Endpoint

        kind, url = self.types.pop(), self.receiver.url + path
        with transaction(self.stage.workspace_id) as db:
            Endpoint.create(db, self.stage.principal, NewEndpoint(url=url, enabled_events=[kind]))
        return kind

    def deliver(self, kinds: list[str], count: int) -> float:
        """Cause events in one transaction, for each endpoint by turns. Returns when they were committed."""
        from models.database.transactions import transaction
        from models.outbox.delivery import Caused, Delivery

        with transaction(self.stage.workspace_id) as db:
            Delivery.cause(db, *(Caused(kinds[n % len(kinds)], "sesn_1") for n in range(count)))
        return time.monotonic()

    def listen(self, stage: Any, count: int = 10) -> None:
        """Make endpoints of another workspace, for all events."""
        from models.database.transactions import transaction
        from models.outbox.endpoint import Endpoint
        from models.outbox.webhook_events import EVENTS

        with transaction(stage.workspace_id) as db:
            for _ in range(count):
                url = self.receiver.url + "/living"
                Endpoint.create(db, stage.principal, NewEndpoint(url=url, enabled_events=EVENTS))

    def wait_for_deliveries(self, stage: Any) -> None:
        """Wait until all deliveries of a workspace have arrived."""
        from models.database.transactions import transaction

        waits = True
        while waits:
            with transaction(stage.workspace_id) as db:
                waits = db.value("SELECT EXISTS (SELECT FROM delivery WHERE status <> 'done')")
            time.sleep(0.05)

    def die(self, kind: str) -> None:
        """Make all deliveries of an endpoint due. The endpoint answered a moment ago, and never will again."""
        from models.database.transactions import transaction
        from models.outbox import claims
        from models.outbox.endpoint import AT_ONCE

        with transaction(self.stage.workspace_id) as db:
            endpoint_id = db.value("SELECT id FROM endpoint WHERE %(kind)s = ANY (enabled_events)", kind=kind)
            db.write("UPDATE delivery SET due_at = assent_now() WHERE endpoint_id = %(id)s AND status = 'queued'", id=endpoint_id)
            answered = "succeeded_at = assent_now(), last_seconds = 0.01, failing_since = NULL, paused_until = NULL"
            db.write(f"UPDATE endpoint SET {answered} WHERE id = %(id)s", id=endpoint_id)
            claims.hint_next(db, endpoint_id, AT_ONCE)

    def rest(self, kind: str) -> None:
        """Postpone all deliveries of this endpoint by a day, and wait until none is running."""
        from models.database.transactions import transaction

        later = "UPDATE delivery SET due_at = assent_now() + interval '1 day' WHERE event_type = %(kind)s AND status = 'queued'"
        running = True
        while running:
            with transaction(self.stage.workspace_id) as db:
                db.write(later, kind=kind)
                running = db.value(
                    "SELECT EXISTS (SELECT FROM delivery WHERE event_type = %(kind)s AND status = 'running')", kind=kind
                )
            time.sleep(0.2)

    def bare(self, count: int) -> float:
        """Send bare tasks. Returns the time before the first."""
        from workers.celery import app

        began = time.monotonic()
        for n in range(self.bare_count, self.bare_count + count):
            app.send_task("deliver.bare", (f"{self.receiver.url}/living", f"bare{n}"), queue="deliver", ignore_result=True)
        self.bare_count += count
        return began

    def rate(self, send: Callable[..., float], *kinds: list[str], count: int) -> float:
        """Return the events per second of a burst, from the commit to the last first byte."""
        return count / self.receiver.times(lambda: send(*kinds, count), count)[-1]

    def delays(self, send: Callable[..., float], *kinds: list[str], count: int = 50) -> list[float]:
        """Return the milliseconds from each commit to the first byte, one event at a time."""
        return [1000 * self.receiver.times(lambda: send(*kinds, 1), 1)[0] for _ in range(count)]
