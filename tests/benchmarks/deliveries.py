"""How many deliveries leave per second, how soon after the commit, and does a dead endpoint slow a living one down?

    python tests/benchmarks/deliveries.py [--count 1000] [--dead 10000] [--rounds 3]

One process `deliver` as the Procfile has it, with sweeps and beat. Beside the deliveries are bare Celery tasks in the same process,
which post by the same HTTP client and do nothing else. Measured at the receiver:

- deliveries per second of one burst, to one endpoint and to ten; the ratio to bare tasks
- ms from the commit (of a bare task: from its sending) to the request's first byte, one at a time
- the same burst and the same delay for a living endpoint while 10,000 deliveries wait for one that never answers

Read the ratios. Fails if the dead endpoint takes more than a half of the living one's rate.
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
from typing import Any

HOUSE = Path(__file__).parents[2]
sys.path[:0] = [str(HOUSE), str(HOUSE / "tests")]

from benchmarks.house import BIN, ROOT, Servers, servers  # noqa: E402
from benchmarks.meters import percentile, spin_ms  # noqa: E402

from deploy.folder import MARK  # noqa: E402
from deploy.supervisor import Child, Supervisor  # noqa: E402

BOUND = 0.5
PATIENCE_SECONDS = 300
WORKER = "celery -A workers worker --without-gossip --without-mingle --loglevel warning"
PROCESSES = {
    "deliver": f"{WORKER} --include benchmarks.bare_delivery --hostname deliver@%h --pool threads --concurrency 20 -Q deliver",
    "sweeps": f"python -m gevent.monkey --module {WORKER} --hostname sweeps@%h --pool gevent --concurrency 10 --queues sweeps",
    "beat": "celery -A workers beat --scheduler celery.beat:Scheduler --loglevel warning",
}


class Receiver:
    """Endpoints on loopback: `/living` answers at once, `/dead` never. Keeps the time of each request's first byte."""

    def __init__(self) -> None:
        self.arrived: dict[str, float] = {}
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
        if b" /dead " in head.split(b"\r\n")[0]:
            await asyncio.sleep(60)
        else:
            self.arrived.setdefault(fields[b"webhook-id"].decode().upper(), at)
            writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        writer.close()

    def wait(self, event_ids: list[str]) -> list[float]:
        """Return when each of the events arrived, in order of arrival."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(event_id.upper() in self.arrived for event_id in event_ids):
            assert time.monotonic() < deadline, f"not all of {len(event_ids)} deliveries arrived within {PATIENCE_SECONDS} s"
            time.sleep(0.002)
        return sorted(self.arrived[event_id.upper()] for event_id in event_ids)


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

        from workers import enqueue

        assert enqueue.publisher(), "its import has hints sent after commits"
        self.stage, self.receiver = Stage(), receiver
        self.bare_count = 0

    def endpoint(self, path: str = "/living") -> Any:
        """A new endpoint."""
        from models.database.transactions import transaction
        from models.outbox.endpoint import Endpoint

        with transaction(self.stage.workspace_id) as db:
            url = self.receiver.url + path
            return Endpoint.create(db, self.stage.principal, url=url, enabled_events=["session.created"], name="", description="")[
                0
            ]

    def deliver(self, endpoints: list[Any], count: int) -> tuple[list[str], float]:
        """Queue deliveries in one transaction, to each endpoint by turns. Returns their event ids, and when they were committed."""
        from models.database.transactions import transaction
        from models.outbox.delivery import Delivery

        with transaction(self.stage.workspace_id) as db:
            rows = [Delivery.test(db, endpoints[n % len(endpoints)], "session.created") for n in range(count)]
        return [row.event_id for row in rows], time.monotonic()

    def bare(self, count: int) -> tuple[list[str], float]:
        """Send bare tasks. Returns their event ids, and when the first was sent."""
        from workers.celery import app

        event_ids = [f"BARE{self.bare_count + n}" for n in range(count)]
        self.bare_count += count
        began = time.monotonic()
        for event_id in event_ids:
            app.send_task("deliver.bare", (f"{self.receiver.url}/living", event_id), queue="deliver", ignore_result=True)
        return event_ids, began

    def rate(self, send: Callable[[], tuple[list[str], float]]) -> float:
        """Requests per second of a burst, from the first to the last that arrived."""
        event_ids, _began = send()
        times = self.receiver.wait(event_ids)
        return (len(times) - 1) / (times[-1] - times[0])

    def delays(self, send: Callable[[], tuple[list[str], float]], count: int = 50) -> list[float]:
        """Milliseconds until the first byte, one request at a time."""
        found = []
        for _ in range(count):
            event_ids, began = send()
            found.append(1000 * (self.receiver.wait(event_ids)[0] - began))
        return found


def main() -> int:
    """Measure, and print. Returns 1 if a dead endpoint takes too much of a living one's rate."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1000, help="deliveries of a burst")
    options.add_argument("--dead", type=int, default=10_000, help="deliveries that wait for the dead endpoint")
    options.add_argument("--rounds", type=int, default=3, help="of which the median counts")
    chosen = options.parse_args()
    with servers() as on, workers(on):
        bench = Bench(Receiver())
        one, ten = [bench.endpoint()], [bench.endpoint() for _ in range(10)]
        bench.receiver.wait(bench.deliver(one, 20)[0] + bench.bare(20)[0])  # the workers are ready
        print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores; a spin takes {spin_ms():.1f} ms")
        rates: dict[str, list[float]] = {"bare tasks": [], "one endpoint": [], "ten endpoints": []}
        for _ in range(chosen.rounds):
            rates["bare tasks"].append(bench.rate(lambda: bench.bare(chosen.count)))
            rates["one endpoint"].append(bench.rate(lambda: bench.deliver(one, chosen.count)))
            rates["ten endpoints"].append(bench.rate(lambda: bench.deliver(ten, chosen.count)))
        _print_rates(rates, "bare tasks")
        _print_delays({"bare task": bench.delays(lambda: bench.bare(1)), "delivery": bench.delays(lambda: bench.deliver(one, 1))})
        bench.deliver([bench.endpoint("/dead")], chosen.dead)
        beside = {
            "alone": rates["one endpoint"],
            f"beside {chosen.dead} to a dead one": [
                bench.rate(lambda: bench.deliver(one, chosen.count)) for _ in range(chosen.rounds)
            ],
        }
        ratio = _print_rates(beside, "alone")
        _print_delays({"beside a dead one": bench.delays(lambda: bench.deliver(one, 1))})
    return int(ratio < BOUND)


def _print_rates(rates: dict[str, list[float]], base: str) -> float:
    """Print medians, and their ratios to `base`. Returns the last ratio."""
    middle = statistics.median(rates[base])
    for name, values in rates.items():
        print(f"{name:32} {statistics.median(values):8.1f} /s   ratio {statistics.median(values) / middle:.2f}")
    return statistics.median(values) / middle


def _print_delays(delays: dict[str, list[float]]) -> None:
    for name, values in delays.items():
        print(f"{name:32} first byte after p50 {statistics.median(values):.1f} ms, p95 {percentile(values, 95):.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
