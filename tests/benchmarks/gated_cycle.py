"""The gated cycle: message, model, approval, tool, model, end; through HTTP, with everything on, beside its floors and its peers.

    python tests/benchmarks/gated_cycle.py [--seconds 8] [--in-flight 16] [--repeat 3] [--peers FOLDER]

Prints, for each repetition, cycles per second and CPU per cycle of each process, write transactions and WAL; then the latency from
a decision to the tool's start at 20 per second; then, in the same minutes on the same Postgres and Redis, its floors: bare Celery
tasks and bare commits. `--peers` names a folder with drivers of other systems (`lg.py`, `dbos_peer.py`, `celery_min.py`), which are
run in between, each making the same two model calls. Compare ratios within one run, never absolutes.
"""

import argparse
import json
import os
import random
import select
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
from benchmarks.house import House, Servers, house, servers
from benchmarks.meters import Cost, Meter, own_cpu, percentile, spin_ms

PROMPT = 'call glob {"pattern": "*.none"}\nthen\nsay done'


class Driver:
    """The client: starts sessions and decides, over kept-alive connections."""

    def __init__(self, at: House) -> None:
        limits = httpx.Limits(max_connections=8, max_keepalive_connections=8)
        self.http = httpx.Client(base_url=at.url, headers={"x-api-key": at.key}, limits=limits, trust_env=False, timeout=30)
        self.pool = ThreadPoolExecutor(4)
        self.marks = os.open(at.pipe, os.O_RDWR | os.O_NONBLOCK)
        self.rest = b""
        policy = {"type": "always_ask"}
        toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": True, "permission_policy": policy}}
        agent = self._post("/v1/agents", {"name": "Bench", "model": "claude-bench", "tools": [toolset]})
        environment = self.http.get("/v1/environments").raise_for_status().json()["data"][0]
        message = {"type": "user.message", "content": [{"type": "text", "text": PROMPT}]}
        self.session = {"agent": agent["id"], "environment_id": environment["id"], "initial_events": [message]}

    def start(self) -> str:
        """A session with its message; its id."""
        session_id: str = self._post("/v1/sessions", self.session)["id"]
        return session_id

    def allow(self, session_id: str, call_id: str) -> None:
        """The decision."""
        said = {"type": "user.tool_confirmation", "tool_use_id": call_id, "result": "allow"}
        self._post(f"/v1/sessions/{session_id}/events", {"events": [said]})

    def read(self, seconds: float = 1) -> list[tuple[str, str, str, int]]:
        """Marks that came: kind, session, call, nanoseconds."""
        if not select.select([self.marks], [], [], seconds)[0]:
            return []
        *lines, self.rest = (self.rest + os.read(self.marks, 1 << 16)).split(b"\n")
        return [(kind, session, call, int(at)) for kind, session, call, at in (line.decode().split() for line in lines)]

    def cycles(self, count: int, in_flight: int) -> None:
        """Run `count` whole cycles, `in_flight` at a time."""
        for _ in range(min(count, in_flight)):
            self.pool.submit(self.start)
        started, done, deadline = min(count, in_flight), 0, time.monotonic() + 120
        while done < count:
            assert time.monotonic() < deadline, f"{done} of {count} cycles after 120 s"
            for kind, session_id, call_id, _ in self.read():
                if kind == "P":
                    self.pool.submit(self.allow, session_id, call_id)
                elif kind == "D":
                    done += 1
                    if started < count:
                        started += 1
                        self.pool.submit(self.start)

    def latency(self, rate: int, seconds: int) -> list[float]:
        """Park sessions, then decide them at `rate` per second; ms from before the POST to the tool's claim."""
        parked: dict[str, str] = {}
        for _ in range(rate * seconds):
            self.pool.submit(self.start)
        while len(parked) < rate * seconds:
            parked |= {session: call for kind, session, call, _ in self.read() if kind == "P"}
        sent: dict[str, int] = {}
        found: list[float] = []
        pace = random.Random(3)
        due = time.monotonic()
        for session_id, call_id in parked.items():
            while (wait := due - time.monotonic()) > 0:
                found += self._started(sent, wait)
            sent[session_id] = time.monotonic_ns()
            self.pool.submit(self.allow, session_id, call_id)
            due += pace.uniform(0.75, 1.25) / rate
        while len(found) < len(parked):
            found += self._started(sent, 1)
        return found

    def _started(self, sent: dict[str, int], seconds: float) -> list[float]:
        return [(at - sent[session]) / 1e6 for kind, session, _, at in self.read(seconds) if kind == "T" and session in sent]

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.http.post(path, json=body).raise_for_status().json()
        return answer


def throughput(at: House, driver: Driver, seconds: float, in_flight: int) -> Cost:
    """Cycles per second and what each costs."""
    driver.cycles(in_flight * 3, in_flight)
    began = time.monotonic()
    driver.cycles(in_flight * 4, in_flight)
    count = max(40, int(in_flight * 4 / (time.monotonic() - began) * seconds))
    meter = Meter(at.admin_url, {**at.pids, "driver": os.getpid()})
    before = meter.read()
    driver.cycles(count, in_flight)
    return Cost.between(before, meter.read(), count)


def ours(at: House, seconds: float, in_flight: int) -> tuple[float, float]:
    """Throughput, then latency, printed. Cycles per second and CPU ms per cycle, without the model's."""
    driver = Driver(at)
    cost = throughput(at, driver, seconds, in_flight)
    names = [name for name in cost.cpu_ms if name != "standin"]
    total = sum(cost.cpu_ms[name] for name in names)
    wrote = f"{cost.write_tx:.1f} write tx, {cost.wal_bytes:.0f} B WAL per cycle, foreign cores {cost.foreign_cores:.2f}"
    print(f"  assent: {cost.rate:.1f} cycles/s, {total:.1f} ms CPU, {wrote}")
    print("    CPU ms: " + "  ".join(f"{name} {cost.cpu_ms[name]:.1f}" for name in names))
    late = driver.latency(20, 6)
    p50, p95, p99 = (percentile(late, p) for p in (50, 95, 99))
    print(f"    decision to tool, 20/s: p50 {p50:.1f}  p95 {p95:.1f}  p99 {p99:.1f} ms of {len(late)}", flush=True)
    return cost.rate, total


def bare_commits(at: House, seconds: float = 2) -> tuple[float, float]:
    """One-row insert commits per second over one connection, and client CPU ms each."""
    with psycopg.connect(at.admin_url, autocommit=True) as db:
        db.execute("CREATE TABLE IF NOT EXISTS bench_log (id bigserial PRIMARY KEY, said text)")
        count, cpu, began = 0, own_cpu(), time.monotonic()
        while time.monotonic() - began < seconds:
            db.execute("INSERT INTO bench_log (said) VALUES ('x')")
            count += 1
        return count / (time.monotonic() - began), 1000 * (own_cpu() - cpu) / count


def peers(on: Servers, folder: Path, seconds: float, in_flight: int) -> list[dict[str, Any]]:
    """One throughput run of each peer that is set up, on the same servers."""
    venvs = Path(os.environ.get("VENVS", "/tmp/peers"))
    runs = {
        "celery": ["celery_min.py", "start=http"],
        "dbos": ["dbos_peer.py"],
        "lg": ["lg.py", "mode=celery"],
        "restate": ["restate_peer.py", "mode=suspended"],
    }
    dsn = on.postgres.url("postgres", "peers")
    env = os.environ | {
        "PEERS_PG_DSN": dsn,
        "PEERS_REDIS_URL": on.redis_url.rpartition("/")[0] + "/9",
        "PEERS_MODEL_URL": on.model_url,
    }
    found = []
    for venv, (script, *more) in runs.items():
        python = venvs / f"venv-{venv}" / "bin" / "python"
        if not python.exists():
            print(f"  {script}: not set up here, left out", flush=True)
            continue
        words = [str(python), script, "throughput", f"secs={seconds:g}", f"conc={in_flight}", *more]
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            print(f"  {script}: failed: {done.stderr[-300:]}", flush=True)
            continue
        found.append(json.loads(lines[-1]))
    return found


def main() -> None:
    """All of it, interleaved."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--in-flight", type=int, default=16)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--peers", type=Path)
    options.add_argument("--postgres-port", type=int, help="of a server for benchmarks only, instead of the embedded one")
    options.add_argument("--redis-url", help="likewise")
    asked = options.parse_args()
    rates: dict[str, list[tuple[float, float]]] = {}
    for repetition in range(asked.repeat):
        with servers(asked.postgres_port, asked.redis_url) as on:
            print(f"\nrepetition {repetition + 1}: spin {spin_ms()} ms")
            with house(on) as at:
                rates.setdefault("assent", []).append(ours(at, asked.seconds, asked.in_flight))
                commits, each = bare_commits(at)
            print(f"  bare commits: {commits:.0f}/s on one connection, {each:.2f} ms client CPU", flush=True)
            for peer in peers(on, asked.peers, asked.seconds, asked.in_flight) if asked.peers else []:
                rates.setdefault(peer["system"], []).append((peer["rate"], peer["cpu_ms"]))
                said = "{rate} cycles/s, {cpu_ms} ms CPU, {write_tx} write tx, {wal_b} B WAL".format(**peer)
                print(f"  {peer['system']}: {said}, foreign cores {peer['foreign_cores']}", flush=True)
    print("\nmedians, and ratios to assent within each repetition")
    for name, runs in rates.items():
        ratio = statistics.median(mine[0] / theirs[0] for mine, theirs in zip(rates["assent"], runs, strict=False))
        cheaper = statistics.median(mine[1] / theirs[1] for mine, theirs in zip(rates["assent"], runs, strict=False))
        rate, cpu = statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs)
        print(f"  {name:28} {rate:7.1f} cycles/s  {cpu:6.1f} ms CPU   assent is {ratio:.2f}x as fast for {cheaper:.2f}x the CPU")


if __name__ == "__main__":
    main()
