"""What an idle stream costs a web process: `python tests/benchmarks/idle_streams.py [N]`, 5,000 unless told otherwise.

Starts a Postgres and a Redis of its own, the API as the Procfile does (one gunicorn worker on gevent), and N streams over N
sessions, read by this process. Prints, with Redis up and then with it dead: memory per stream, CPU of the web process over 20 s in
which nothing happens but the comments, and how long an event takes from its commit to its reader. The rest of the machine's CPU
is printed too: it spoils the figures.
"""

import json
import os
import random
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg

HOUSE = Path(__file__).parents[2]
sys.path[:0] = [str(HOUSE), str(HOUSE / "tests")]

IDLE_SECONDS = 20
EVENTS = 400
PER_SECOND = 20
AT_ONCE = 50
"""Streams that are being opened at a time."""


@contextmanager
def stack(folder: Path) -> Iterator[dict[str, str]]:
    """A migrated Postgres, in a process of its own as for the tests."""
    server = subprocess.Popen([sys.executable, str(HOUSE / "tests" / "servers.py"), str(folder), str(os.getpid())], cwd=HOUSE)
    try:
        while not (folder / "servers.json").exists():
            assert server.poll() is None, "the servers did not start"
            time.sleep(0.05)
        yield json.loads((folder / "servers.json").read_text())
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


@contextmanager
def web(count: int) -> Iterator[tuple[int, psutil.Process]]:
    """The API's port and its worker process."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "api:create_app()",
        "--config",
        "python:api.serving",
        "--bind",
        f"127.0.0.1:{port}",
    ]
    command += ["--worker-connections", str(count + 1000), "--backlog", "4096", "--no-control-socket"]
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_SYSTEM_URL"}  # the API refuses to hold it
    env |= {"ASSENT_STREAMS_PER_KEY": "0", "ASSENT_REQUESTS_PER_SECOND": "0"}
    main = subprocess.Popen(command, cwd=HOUSE, env=env)
    try:
        while True:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                break
            time.sleep(0.05)
        yield port, psutil.Process(main.pid).children()[0]
    finally:
        main.terminate()
        main.wait()


def sessions(admin: str, first: str, count: int) -> list[str]:
    """Copies of a session, as many as wanted."""
    with psycopg.connect(admin, autocommit=True) as db:
        names = [row[0] for row in db.execute("SELECT column_name FROM information_schema.columns WHERE table_name = 'session'")]
        kept = ", ".join(f'"{name}"' for name in names if name != "id")
        copies = f"SELECT 'sesn_bench' || n, {kept} FROM session, generate_series(1, %s) n WHERE id = %s"
        db.execute(f"INSERT INTO session (id, {kept}) {copies}", (count, first))
        db.execute("ANALYZE")
    return [f"sesn_bench{number}" for number in range(1, count + 1)]


class Clients:
    """All streams, read by one selector."""

    def __init__(self, port: int, key: str) -> None:
        self.port, self.key = port, key
        self.selector = selectors.DefaultSelector()
        self.heard: dict[str, float] = {}
        """Sessions whose reader got an event, and when."""

    def open(self, ids: list[str]) -> float:
        """Open a stream on each. Returns the seconds it took."""
        began, waiting, opening = time.monotonic(), list(reversed(ids)), set()
        while waiting or opening:
            while waiting and len(opening) < AT_ONCE:
                session_id = waiting.pop()
                sock = socket.create_connection(("127.0.0.1", self.port))
                sock.sendall(self.request(session_id).encode())
                self.selector.register(sock, selectors.EVENT_READ, session_id)
                opening.add(session_id)
            for session_id, data in self.read(1):
                assert session_id not in opening or b" 200 " in data[:20], data
                opening.discard(session_id)
        return time.monotonic() - began

    def request(self, session_id: str) -> str:
        """Return the request that opens one stream."""
        return f"GET /v1/sessions/{session_id}/events/stream HTTP/1.1\r\nhost: x\r\nx-api-key: {self.key}\r\n\r\n"

    def read(self, seconds: float) -> list[tuple[str, bytes]]:
        """What came, once something has or the time is over."""
        found = []
        for ready, _ in self.selector.select(seconds):
            data = ready.fileobj.recv(65536)
            assert data, "a stream has ended"
            if b"event: " in data:
                self.heard[ready.data] = time.monotonic()
            found.append((ready.data, data))
        return found


def idle(clients: Clients, process: psutil.Process) -> tuple[float, float]:
    """CPU of the web process and of everybody else but us, in percent of one core."""
    began, mine, all_of_it, ours = time.monotonic(), sum(process.cpu_times()[:2]), busy(), time.process_time()
    while time.monotonic() < began + IDLE_SECONDS:
        clients.read(0.5)
    percent = 100 / (time.monotonic() - began)
    mine, all_of_it, ours = sum(process.cpu_times()[:2]) - mine, busy() - all_of_it, time.process_time() - ours
    return mine * percent, (all_of_it - mine - ours) * percent


def busy() -> float:
    """CPU seconds of the whole machine."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait)


def latencies(clients: Clients, say: "object", ids: list[str]) -> list[float]:
    """Seconds from commit to reader, of events on random sessions, at an even pace."""
    chosen = random.sample(ids, min(EVENTS, len(ids)))
    clients.heard.clear()
    sent: dict[str, float] = {}
    began = time.monotonic()
    for number, session_id in enumerate(chosen):
        while time.monotonic() < began + number / PER_SECOND:
            clients.read(max(began + number / PER_SECOND - time.monotonic(), 0))
        say(session_id)  # type: ignore[operator]
        sent[session_id] = time.monotonic()
        clients.read(0)
    deadline = time.monotonic() + 15
    while set(sent) - set(clients.heard):
        assert time.monotonic() < deadline, f"{len(set(sent) - set(clients.heard))} events were not heard"
        clients.read(0.5)
    return sorted(max(clients.heard[s] - at, 0) for s, at in sent.items())


def main() -> None:
    """Measure, and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(65_536, 2 * count)), most))
    from faults.own_redis import own_redis

    with tempfile.TemporaryDirectory() as place, stack(Path(place)) as urls, own_redis(Path(place)) as redis:
        os.environ |= {"DATABASE_URL": urls["app"], "DATABASE_SYSTEM_URL": urls["system"], "REDIS_URL": redis.url}
        from doors.served import key
        from rows.stage import Stage

        import workers.enqueue  # noqa: F401 - publishes after each commit

        stage = Stage()
        ids = sessions(urls["postgres"], stage.session(), count)
        secret = key(stage)
        with web(count) as (port, process):
            clients = Clients(port, secret)
            clients.open(ids[:1])
            before = process.memory_info().rss
            took = clients.open(ids[1:])
            memory = (process.memory_info().rss - before) / count
            say(f"{count} streams opened in {took:.0f} s, {memory / 1024:.1f} kB each, {process.memory_info().rss >> 20} MB in all")
            for state in ("up", "dead"):
                if state == "dead":
                    redis.kill()
                cpu, others = idle(clients, process)
                heard = latencies(clients, stage.message, ids)
                half, late = heard[len(heard) // 2] * 1000, heard[int(len(heard) * 0.99)] * 1000
                say(f"Redis {state}: idle CPU {cpu:.1f} % of a core (others {others:.0f} %)")
                say(f"    commit to reader p50 {half:.0f} ms, p99 {late:.0f} ms")
            say(f"at the end {process.memory_info().rss >> 20} MB")


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


if __name__ == "__main__":
    main()
