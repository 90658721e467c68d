"""What an idle stream costs a web process: `make bench ARGS="idle_streams [N]"`, by default 5,000 streams.

Starts a Postgres and a Redis of its own, the API as the Procfile does (one gunicorn worker on gevent), and N streams over N
sessions, read by this process. Prints, with Redis up and then with it dead: memory per stream, CPU of the web process over 20 s in
which only comments are sent, and how long an event takes from its commit to its reader. The CPU of other processes on the machine
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from benchmarks.copies import copy
from benchmarks.house import ROOT
from benchmarks.meters import machine_cpu

from deploy.folder import free_port

IDLE_SECONDS = 20
EVENTS = 400
PER_SECOND = 20
AT_ONCE = 50
"""How many streams are opened at a time."""


@contextmanager
def stack(folder: Path) -> Iterator[dict[str, str]]:
    """Run a migrated Postgres in a process of its own, as the tests do. Yields its URLs by role."""
    server = subprocess.Popen([sys.executable, str(ROOT / "tests" / "servers.py"), str(folder), str(os.getpid())], cwd=ROOT)
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
    """Run the API. Yields its port and its worker process."""
    port = free_port()
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
    main = subprocess.Popen(command, cwd=ROOT, env=env)
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
    """Insert `count` copies of a session. Returns their ids."""
    with psycopg.connect(admin, autocommit=True) as db:
        copy(db, "session", f"id = '{first}'", {"id": "'sesn_bench' || n"}, count)
        db.execute("ANALYZE")
    return [f"sesn_bench{number}" for number in range(1, count + 1)]


class Clients:
    """All streams, read by one selector."""

    def __init__(self, port: int, key: str) -> None:
        self.port, self.key = port, key
        self.selector = selectors.DefaultSelector()
        self.heard: dict[str, float] = {}
        """When the reader of each session got its last event."""

    def open(self, ids: list[str]) -> float:
        """Open a stream on each session. Returns the seconds that this took."""
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
        """Return the data that arrived, by session, after waiting at most `seconds` for the first."""
        received = []
        for ready, _ in self.selector.select(seconds):
            data = ready.fileobj.recv(65536)
            assert data, "a stream has ended"
            if b"event: " in data:
                self.heard[ready.data] = time.monotonic()
            received.append((ready.data, data))
        return received


def idle(clients: Clients, process: psutil.Process) -> tuple[float, float]:
    """Return the CPU of the web process and of all other processes but this one, in percent of one core."""
    began, web_cpu, machine, own = time.monotonic(), sum(process.cpu_times()[:2]), machine_cpu(), time.process_time()
    while time.monotonic() < began + IDLE_SECONDS:
        clients.read(0.5)
    percent = 100 / (time.monotonic() - began)
    web_cpu, machine, own = sum(process.cpu_times()[:2]) - web_cpu, machine_cpu() - machine, time.process_time() - own
    return web_cpu * percent, (machine - web_cpu - own) * percent


def latencies(clients: Clients, send: Callable[[str], object], ids: list[str]) -> list[float]:
    """Send events on random sessions at an even pace. Returns the sorted seconds from each commit to its reader."""
    chosen = random.sample(ids, min(EVENTS, len(ids)))
    clients.heard.clear()
    sent: dict[str, float] = {}
    began = time.monotonic()
    for number, session_id in enumerate(chosen):
        while time.monotonic() < began + number / PER_SECOND:
            clients.read(max(began + number / PER_SECOND - time.monotonic(), 0))
        send(session_id)
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
