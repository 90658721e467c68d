"""How many deliveries leave per second, how soon after the commit, and does a dead endpoint slow a living one down?

    make bench ARGS="deliveries [--count 1000] [--dead 10000] [--rounds 3]"

One process `deliver` as the Procfile has it, with sweeps and beat. Compared with bare Celery tasks in the same
process, which post by the same HTTP client and do nothing else. Measured at the receiver:

- deliveries per second of one burst, to one endpoint and to ten, from the commit to the last first byte; the ratio to bare tasks
- ms from the commit (of a bare task: from its sending) to the request's first byte, one at a time
- ms of a decision's transaction, alone and with 10 endpoints and 10 channels that are told of it
- the same burst and delay of a living endpoint, by turns alone and while 10,000 deliveries wait for an endpoint that has just
  stopped answering

Read the ratios. Fails if the living endpoint does not keep nine tenths of its rate.
"""

import argparse
import os
import statistics
import sys
import time

from benchmarks.delivering import Bench, Receiver, workers
from benchmarks.house import servers
from benchmarks.meters import percentile, spin_ms

BOUND = 0.9


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
        _decisions(bench)
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


def _decisions(bench: Bench, count: int = 40) -> None:
    """Print how long a decision's transaction takes, alone and with 10 endpoints and 10 channels that are told of it."""
    from outbox.notified import channel
    from rows.stage import Stage, call

    alone, heard = Stage(), Stage()
    approvals = {}
    for stage in (alone, heard):
        sessions = [stage.session() for _ in range(count)]
        for session_id in sessions:
            stage.message(session_id)
            stage.reply(session_id, call())
        approvals[stage] = [stage.approvals(session_id)[0] for session_id in sessions]
    bench.listen(heard)
    for _ in range(10):
        channel(heard)
    times: dict[str, list[float]] = {"a decision alone": [], "with 10 endpoints and 10 channels": []}
    for n in range(count):
        for name, stage in zip(times, (alone, heard), strict=True):
            began = time.monotonic()
            stage.decide(approvals[stage][n], result="deny")
            times[name].append(1000 * (time.monotonic() - began))
            bench.wait_for_deliveries(stage)
    first, second = (statistics.median(values) for values in times.values())
    print(f"a decision takes {first:.1f} ms, with 10 endpoints and 10 channels {second:.1f} ms, ratio {second / first:.2f}")


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
