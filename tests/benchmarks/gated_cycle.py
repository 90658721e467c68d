"""The gated cycle (message, model, approval, tool, model, end) over HTTP, compared with its floors and with other systems.

    make bench ARGS="gated_cycle [--seconds 8] [--in-flight 16] [--repeat 3] [--peers FOLDER] [--profile 10]"

Prints, for each repetition, cycles per second and CPU per cycle of each process, write transactions, WAL, and the messages to
Postgres with their statements, without those of sweeps, which do not depend on cycles; then the latency from a decision to the
tool's start at half of this rate, at most 20 per second; then, in the same minutes on the same Postgres and Redis, its floors: the
cycle's three Celery tasks with nothing in them, on the same workers, and its commits with a row each. `--peers` names a folder with
drivers of other systems (`lg.py`, `dbos_peer.py`, `celery_min.py`), which run in between, each making the same two model calls.
The last repetition ends with a profile of `--profile` seconds (0 for none): the owners of a cycle's CPU, and the fifteen functions
of Assent that take most. Compare ratios within one run, never absolutes; above 0.2 foreign cores a run says little.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.driver import Driver, Loop
from benchmarks.floors import BareTasks, bare_commits
from benchmarks.house import House, Servers, house, servers
from benchmarks.meters import Cost, Meter, percentile, spin_ms, timed
from benchmarks.owners import profile, sampler

METERED = {"postgres": "Postgres", "redis": "Redis", "beat": "beat", "driver": "driver (http)"}
"""Processes whose CPU has one owner; the others are sampled."""


def throughput(at: House, loop: Loop, seconds: float, in_flight: int) -> Cost:
    """Return the cycles per second and the cost of each."""
    loop.cycles(in_flight * 3, in_flight)
    rate = in_flight * 4 / timed(lambda: loop.cycles(in_flight * 4, in_flight))
    count = max(40, int(rate * seconds))
    with psycopg.connect(at.admin_url, autocommit=True) as db:
        db.execute("ANALYZE")  # as autovacuum does on a running server: without statistics, some plans read whole tables
    meter = Meter(at.admin_url, {**at.pids, "driver": os.getpid()}, at.counts)
    before = meter.read()
    loop.cycles(count, in_flight)
    return Cost.between(before, meter.read(), count)


def ours(at: House, driver: Driver, seconds: float, in_flight: int) -> Cost:
    """Measure and print throughput, then latency. Returns the cost of a cycle."""
    cost = throughput(at, driver, seconds, in_flight)
    wrote = f"{cost.write_tx:.1f} write tx, {cost.wal_bytes:.0f} B WAL per cycle, foreign cores {cost.foreign_cores:.2f}"
    print(f"  assent: {cost.rate:.1f} cycles/s, {whole(cost):.1f} ms CPU, {wrote}")
    print(f"    {cost.messages:.1f} messages to Postgres with {cost.statements:.0f} statements per cycle")
    print("    CPU ms: " + "  ".join(f"{name} {ms:.1f}" for name, ms in cost.cpu_ms.items() if name != "standin"))
    rate = max(1, min(20, int(cost.rate / 2)))
    late = driver.latency(rate, 6)
    p50, p95, p99 = (percentile(late, p) for p in (50, 95, 99))
    ratio = f"p95 is {p95 / p50:.1f}x p50 (at most 2)"
    print(f"    decision to tool, {rate}/s: p50 {p50:.1f}  p95 {p95:.1f}  p99 {p99:.1f} ms of {len(late)}, {ratio}", flush=True)
    return cost


def floors(on: Servers, at: House, seconds: float, in_flight: int, commits: int) -> dict[str, Cost]:
    """Measure and print the cycle's tasks alone, and its commits alone."""
    loop = BareTasks(at, on.redis_url)
    costs = {"bare Celery tasks": throughput(at, loop, seconds / 2, in_flight)}
    loop.close()
    costs["bare commits"] = bare_commits(at, commits)
    for name, many in (("bare Celery tasks", 3), ("bare commits", commits)):
        cost = costs[name]
        each = "  ".join(f"{process} {ms:.2f}" for process, ms in cost.cpu_ms.items() if ms >= 0.05 and process != "standin")
        figures = f"{cost.rate:.1f} cycles/s of {many}, {whole(cost):.1f} ms CPU ({each}), foreign cores {cost.foreign_cores:.2f}"
        print(f"  {name}: {figures}", flush=True)
    return costs


def whole(cost: Cost) -> float:
    """Return the CPU milliseconds per cycle of all processes but the model's."""
    return sum(ms for name, ms in cost.cpu_ms.items() if name != "standin")


def print_profile(at: House, driver: Driver, cost: Cost, seconds: int, in_flight: int) -> None:
    """Sample, and print the owners of the CPU."""
    if sampler() is None:
        print("    no profile: pip install py-spy", flush=True)
        return

    def work() -> int:
        driver.cycles(in_flight * 2, in_flight)
        return in_flight * 2

    sampled = {name: pid for name, pid in at.pids.items() if name not in {*METERED, "standin"}}
    shares, cycles = profile(sampled, cost.cpu_ms, seconds, work)
    shares.print({owner: cost.cpu_ms[name] for name, owner in METERED.items()}, cycles)


def peers(on: Servers, folder: Path, seconds: float, in_flight: int) -> list[dict[str, Any]]:
    """Run each peer that is set up once, on the same servers. Returns their figures."""
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
    figures = []
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
        figures.append(json.loads(lines[-1]))
    return figures


def main() -> None:
    """Measure everything, interleaved, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--in-flight", type=int, default=16)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--profile", type=int, default=10, metavar="SECONDS")
    options.add_argument("--peers", type=Path)
    options.add_argument("--postgres-port", type=int, help="of a server for benchmarks only, instead of the embedded one")
    options.add_argument("--redis-url", help="likewise")
    chosen = options.parse_args()
    rates: dict[str, list[tuple[float, float]]] = {}
    for repetition in range(chosen.repeat):
        with servers(chosen.postgres_port, chosen.redis_url) as on:
            print(f"\nrepetition {repetition + 1}: spin {spin_ms()} ms")
            with house(on) as at:
                driver = Driver(at)
                cost = ours(at, driver, chosen.seconds, chosen.in_flight)
                costs = {"assent": cost} | floors(on, at, chosen.seconds, chosen.in_flight, round(cost.write_tx))
                if chosen.profile and repetition == chosen.repeat - 1:
                    print_profile(at, driver, cost, chosen.profile, chosen.in_flight)
                driver.close()
            for name, each in costs.items():
                rates.setdefault(name, []).append((each.rate, whole(each)))
            for peer in peers(on, chosen.peers, chosen.seconds, chosen.in_flight) if chosen.peers else []:
                rates.setdefault(peer["system"], []).append((peer["rate"], peer["cpu_ms"]))
                line = "{rate} cycles/s, {cpu_ms} ms CPU, {write_tx} write tx, {wal_b} B WAL".format(**peer)
                print(f"  {peer['system']}: {line}, foreign cores {peer['foreign_cores']}", flush=True)
    compare(rates)


def compare(rates: dict[str, list[tuple[float, float]]]) -> None:
    """Print the medians of cycles per second and CPU milliseconds, and the ratios."""
    print("\nmedians, and ratios to assent within each repetition")
    for name, runs in rates.items():
        ratio = statistics.median(mine[0] / theirs[0] for mine, theirs in zip(rates["assent"], runs, strict=False))
        cheaper = statistics.median(mine[1] / theirs[1] for mine, theirs in zip(rates["assent"], runs, strict=False))
        rate, cpu = statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs)
        print(f"  {name:28} {rate:7.1f} cycles/s  {cpu:6.1f} ms CPU   assent is {ratio:.2f}x as fast for {cheaper:.2f}x the CPU")


if __name__ == "__main__":
    main()
