"""How many deliveries leave per second, how soon after the commit, and does a dead endpoint slow a living one down?

    python tests/benchmarks/deliveries.py [--count 1000] [--dead 10000] [--rounds 3]

One process `deliver` as the Procfile has it, with sweeps and beat. Beside the deliveries are bare Celery tasks in the same process,
which post by the same HTTP client and do nothing else. Measured at the receiver:

- deliveries per second of one burst, to one endpoint and to ten, from the commit to the last first byte; the ratio to bare tasks
- ms from the commit (of a bare task: from its sending) to the request's first byte, one at a time
- the same burst and the same delay for a living endpoint by turns alone, and from the moment on in which 10,000 deliveries wait for
  another that has just stopped answering

Read the ratios. Fails if the living endpoint does not keep nine tenths of its rate.
"""

import argparse
import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HOUSE = Path(__file__).parents[2]
sys.path[:0] = [str(HOUSE), str(HOUSE / "tests")]

from benchmarks.house import BIN, ROOT, Servers, servers  # noqa: E402
from benchmarks.meters import percentile, spin_ms  # noqa: E402

from deploy.folder import MARK  # noqa: E402
from deploy.supervisor import Child, Supervisor  # noqa: E402

BOUND = 0.9
PATIENCE_SECONDS = 300
WORKER = "celery -A workers worker --without-gossip --without-mingle --loglevel warning"
PROCESSES = {
    "deliver": f"{WORKER} --include benchmarks.bare_delivery --hostname deliver@%h --pool threads --concurrency 40 -Q deliver",
    "sweeps": f"python -m gevent.monkey --module {WORKER} --hostname sweeps@%h --pool gevent --concurrency 10 --queues sweeps",
    "beat": "celery -A workers beat --scheduler celery.beat:Scheduler --loglevel warning",
}


class Receiver:
    """Endpoints on loopback, which answer at once; `/dead` never, once it `is_dead`. Keeps the time of each event's first byte."""

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
    """The processes that deliver; this process writes rows and sends hints."""
    from models.database.encryption import new_keys

    private, public = new_keys()
    env = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        MARK: str(on.folder.path),
        "PYTHONPATH": str(ROOT / "tests"),
        "DATABASE_URL": on.postgres.url("app"),
        "DATABASE_SYSTEM_URL": on.postgres.url("system"),
        "REDIS_URL": on.redis_url,
        "ASSENT_ENVIRONMENT": "development",
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
    """A workspace with endpoints, and what is sent to them."""

    def __init__(self, receiver: Receiver) -> None:
        from rows.stage import Stage

        from models.pure.webhook_events import EVENTS
        from workers import enqueue

        assert enqueue.publisher(), "its import has hints sent after commits"
        self.stage, self.receiver = Stage(), receiver
        self.types, self.bare_count = list(EVENTS), 0

    def endpoint(self, path: str = "/living") -> str:
        """Make an endpoint. Returns the type of its events, which no other endpoint gets."""
        from models.database.transactions import transaction
        from models.outbox.endpoint import Endpoint

        kind, url = self.types.pop(), self.receiver.url + path
        with transaction(self.stage.workspace_id) as db:
            Endpoint.create(db, self.stage.principal, url=url, enabled_events=[kind], name="", description="")
        return kind

    def deliver(self, kinds: list[str], count: int) -> float:
        """Cause events in one transaction, for each endpoint by turns. Returns when they were committed."""
        from models.database.transactions import transaction
        from models.outbox.delivery import Caused, Delivery

        with transaction(self.stage.workspace_id) as db:
            Delivery.cause(db, *(Caused(kinds[n % len(kinds)], "sesn_1") for n in range(count)))
        return time.monotonic()

    def die(self, kind: str) -> None:
        """Queue all deliveries of an endpoint that answered a moment ago, and never will again."""
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
        """Take all deliveries of this endpoint away for a day, and wait until none is on its way."""
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
        """Send bare tasks. Returns when the first was sent."""
        from workers.celery import app

        began = time.monotonic()
        for n in range(self.bare_count, self.bare_count + count):
            app.send_task("deliver.bare", (f"{self.receiver.url}/living", f"bare{n}"), queue="deliver", ignore_result=True)
        self.bare_count += count
        return began

    def rate(self, send: Callable[..., float], *kinds: list[str], count: int) -> float:
        """Events per second of a burst, from the commit to the last first byte."""
        return count / self.receiver.times(lambda: send(*kinds, count), count)[-1]

    def delays(self, send: Callable[..., float], *kinds: list[str], count: int = 50) -> list[float]:
        """Milliseconds until the first byte, one event at a time."""
        return [1000 * self.receiver.times(lambda: send(*kinds, 1), 1)[0] for _ in range(count)]


def main() -> int:
    """Measure, and print. Returns 1 if a dead endpoint takes too much of a living one's rate."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1000, help="deliveries of a burst")
    options.add_argument("--dead", type=int, default=10_000, help="deliveries that wait for the dead endpoint")
    options.add_argument("--rounds", type=int, default=3, help="of which the median counts")
    chosen = options.parse_args()
    with servers() as on, workers(on):
        bench = Bench(Receiver())
        one, ten, dead = [bench.endpoint()], [bench.endpoint() for _ in range(10)], [bench.endpoint("/dead")]
        for kinds in (one, ten, dead):  # the workers are ready, and the endpoints have answered
            bench.rate(bench.deliver, kinds, count=20)
        bench.rate(bench.bare, count=20)
        print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores; a spin takes {spin_ms():.1f} ms")
        rates: dict[str, list[float]] = {"bare tasks": [], "one endpoint": [], "ten endpoints": []}
        for _ in range(chosen.rounds):
            rates["bare tasks"].append(bench.rate(bench.bare, count=chosen.count))
            rates["one endpoint"].append(bench.rate(bench.deliver, one, count=chosen.count))
            rates["ten endpoints"].append(bench.rate(bench.deliver, ten, count=chosen.count))
        _print_rates(rates, "bare tasks")
        _print_delays({"bare task": bench.delays(bench.bare), "delivery": bench.delays(bench.deliver, one)})
        return int(_beside(bench, one, dead, chosen) < BOUND)


def _beside(bench: Bench, one: list[str], dead: list[str], chosen: argparse.Namespace) -> float:
    """Print the rates of a living endpoint, alone and beside one that dies at that moment. Returns the rounds' median ratio."""
    bench.receiver.is_dead = True
    for _ in range(0, chosen.dead, 1000):
        bench.deliver(dead, min(1000, chosen.dead))
    rates: dict[str, list[float]] = {"alone": [], f"beside {chosen.dead} to a dead one": []}
    delays: dict[str, list[float]] = {name: [] for name in rates}
    for _ in range(chosen.rounds):
        for name, prepare in zip(rates, (bench.rest, bench.die), strict=True):
            prepare(dead[0])
            rates[name].append(bench.rate(bench.deliver, one, count=chosen.count))
            delays[name] += bench.delays(bench.deliver, one, count=20)
    _print_rates(rates, "alone")
    _print_delays(delays)
    alone, beside = rates.values()
    ratio = statistics.median(b / a for a, b in zip(alone, beside, strict=True))
    print(f"the living endpoint keeps {ratio:.2f} of its rate (median of {chosen.rounds} rounds)")
    return ratio


def _print_rates(rates: dict[str, list[float]], base: str) -> None:
    """Print medians, and their ratios to `base`."""
    middle = statistics.median(rates[base])
    for name, values in rates.items():
        rounds = ", ".join(f"{value:.0f}" for value in values)
        print(f"{name:32} {statistics.median(values):8.1f} /s   ratio {statistics.median(values) / middle:.2f}   rounds {rounds}")


def _print_delays(delays: dict[str, list[float]]) -> None:
    for name, values in delays.items():
        print(f"{name:32} first byte after p50 {statistics.median(values):.1f} ms, p95 {percentile(values, 95):.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
