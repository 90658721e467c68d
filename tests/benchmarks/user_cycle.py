"""The gated cycle as users make it: the official SDK, a session of its own, an open stream, one call that a person allows.

    make bench ARGS="user_cycle [--tool bash|glob] [--seconds 8] [--in-flight 8] [--repeat 3] [--beside CHECKOUT] [--bare]
                               [--profile 10]"

Prints, for each repetition, cycles per second, CPU per cycle of each process without the client's, write transactions, WAL, and the
messages to Postgres with their statements, by the verb that sends them. `bash` runs in bubblewrap, with `--bare` without a sandbox.
`--beside` names another checkout with its own `.venv`, at any commit since 70c169d; both stand in turn, each on servers of its own.
Compare ratios within one run, never absolutes; above 0.2 foreign cores a run says little.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from benchmarks import counting
from benchmarks.gated_cycle import METERED
from benchmarks.meters import Cost, Meter, spin_ms
from benchmarks.owners import profile

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
COUNTED = 40
"""Cycles whose messages to Postgres are counted, after those whose CPU is measured."""


@contextlib.contextmanager
def standing(checkout: Path, **settings: str) -> Iterator[dict[str, Any]]:
    """Run the house of a checkout. Returns what `benchmarks.standing` prints."""
    python = checkout / ".venv" / "bin" / "python"
    env = os.environ | {"PYTHONPATH": f"{checkout}:{checkout / 'tests'}"}
    words = [python, "-P", HERE / "standing.py", *(f"{name}={value}" for name, value in settings.items())]
    with subprocess.Popen(words, cwd=checkout, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()


class Client:
    """The client, a process of its own: a program with its arguments."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read()

    def cycles(self, count: int) -> float:
        """Run so many cycles. Returns the seconds."""
        assert self.process.stdin
        print(count, file=self.process.stdin, flush=True)
        return float(self._read())

    def _read(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the client has ended"
        return line

    def close(self) -> None:
        """End it."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)


def measure(
    checkout: Path, tool: str, seconds: float, in_flight: int, shell: str, sampled_seconds: int = 0, program: str = "user_client.py"
) -> Cost:
    """Run one house and its client, a program beside this one. Returns the cost of a cycle."""
    with standing(checkout, ASSENT_SHELL=shell) as at:
        client = Client([str(HERE / program), at["url"], at["key"], tool, str(in_flight)])
        client.cycles(in_flight * 3)
        rate = in_flight * 4 / client.cycles(in_flight * 4)
        count = max(40, int(rate * seconds))
        with psycopg.connect(at["admin_url"], autocommit=True) as db:
            db.execute("ANALYZE")
        counts = Path(at["counts"]) if at["counts"] and checkout == ROOT else None
        meter = Meter(at["admin_url"], {**at["pids"], "client": client.process.pid})
        with counting.pause(counts) if counts else contextlib.nullcontext():
            before = meter.read()
            client.cycles(count)
            cost = Cost.between(before, meter.read(), count)
        if counts:
            start = counting.by_verb(counts, meter.sweeps)
            client.cycles(COUNTED)
            print_verbs(start, counting.by_verb(counts, meter.sweeps), COUNTED)
        if sampled_seconds:
            print_profile(at["pids"], client, cost, sampled_seconds, in_flight)
        client.close()
    return cost


def print_profile(pids: dict[str, int], client: Client, cost: Cost, seconds: int, in_flight: int) -> None:
    """Sample the processes, and print the owners of their CPU."""

    def work() -> int:
        client.cycles(in_flight * 2)
        return in_flight * 2

    sampled = {name: pid for name, pid in pids.items() if name not in {*METERED, "standin"}}
    shares, cycles = profile(sampled, cost.cpu_ms, seconds, work)
    shares.print({owner: cost.cpu_ms[name] for name, owner in METERED.items() if name in pids}, cycles)


def print_verbs(start: dict[str, counting.Count], end: dict[str, counting.Count], cycles: int) -> None:
    """Print what each verb sent to Postgres per cycle, the most statements first."""
    print("      tx  messages  statements   by verb")
    total = [0.0, 0.0, 0.0]
    for verb, count in sorted(end.items(), key=lambda each: -each[1].statements):
        first = start.get(verb, counting.Count())
        each = [(getattr(count, name) - getattr(first, name)) / cycles for name in ("commits", "messages", "statements")]
        total = [sum(pair) for pair in zip(total, each, strict=True)]
        if each[1] >= 0.05:
            print("    {:4.1f}  {:8.1f}  {:10.1f}   {}".format(*each, verb))
    print("    {:4.1f}  {:8.1f}  {:10.1f}   in all".format(*total))


def whole(cost: Cost) -> float:
    """Return the CPU milliseconds per cycle of all processes but the model's and the client's."""
    return sum(ms for name, ms in cost.cpu_ms.items() if name not in {"standin", "client"})


def main() -> None:
    """Measure each checkout in turn, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tool", choices=("bash", "glob"), action="append")
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--in-flight", type=int, default=8)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--bare", action="store_true", help="no sandbox")
    options.add_argument("--profile", type=int, default=0, metavar="SECONDS", help="sample the processes as well")
    options.add_argument("--beside", type=Path, metavar="CHECKOUT")
    chosen = options.parse_args()
    shell = "bare" if chosen.bare else "bubblewrap"
    checkouts = [ROOT, *([chosen.beside.resolve()] if chosen.beside else [])]
    costs: dict[tuple[str, Path], list[Cost]] = {}
    for repetition in range(chosen.repeat):
        print(f"\nrepetition {repetition + 1}: spin {spin_ms()} ms")
        for tool in chosen.tool or ("bash", "glob"):
            for checkout in checkouts:
                sampled_seconds = chosen.profile if checkout == ROOT else 0
                cost = measure(checkout, tool, chosen.seconds, chosen.in_flight, shell, sampled_seconds)
                costs.setdefault((tool, checkout), []).append(cost)
                print_cost(tool, checkout, cost)
    print("\nmedians")
    for (tool, checkout), runs in costs.items():
        rate, cpu = statistics.median(run.rate for run in runs), statistics.median(whole(run) for run in runs)
        line = f"  {tool:5} {checkout.name:12} {rate:6.1f} cycles/s  {cpu:6.1f} ms CPU"
        if checkout != ROOT:
            ours = costs[tool, ROOT]
            faster = statistics.median(mine.rate / theirs.rate for mine, theirs in zip(ours, runs, strict=True))
            cheaper = statistics.median(whole(mine) / whole(theirs) for mine, theirs in zip(ours, runs, strict=True))
            line += f"   this checkout is {faster:.2f}x as fast for {cheaper:.2f}x the CPU"
        print(line)


def print_cost(tool: str, checkout: Path, cost: Cost) -> None:
    """Print one measurement."""
    wrote = f"{cost.write_tx:.1f} write tx, {cost.wal_bytes:.0f} B WAL, foreign cores {cost.foreign_cores:.2f}"
    print(f"  {tool} {checkout.name}: {cost.rate:.1f} cycles/s, {whole(cost):.1f} ms CPU, {wrote}")
    print("    CPU ms: " + "  ".join(f"{name} {ms:.1f}" for name, ms in cost.cpu_ms.items()), flush=True)


if __name__ == "__main__":
    main()
