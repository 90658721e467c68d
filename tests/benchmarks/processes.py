"""Cycles per second over 1, 2 and 4 processes of each kind, as far as the cores allow.

    make bench ARGS="processes [--seconds 5] [--counts 1 2 4]"

The gated cycle over HTTP, with so many gunicorn workers, turns workers and processes of the tools worker. Prints the rate, its
ratio to one process of each, the CPU per cycle of all, and the cores in use: a rate that no longer grows while cores are free has
another cause.
"""

import argparse
import os

from benchmarks.driver import Driver
from benchmarks.gated_cycle import throughput, whole
from benchmarks.house import house, servers
from benchmarks.meters import spin_ms


def main() -> None:
    """Measure each count, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=5)
    options.add_argument("--in-flight", type=int, default=16)
    options.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4])
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores; a spin takes {spin_ms()} ms")
    first = 0.0
    for count in chosen.counts:
        with servers() as on, house(on, tools=count, turns=count, WEB_CONCURRENCY=str(count)) as at:
            driver = Driver(at)
            cost = throughput(at, driver, chosen.seconds, chosen.in_flight)
            driver.close()
        first = first or cost.rate
        cores = cost.rate * sum(cost.cpu_ms.values()) / 1000
        figures = f"{cost.rate:6.1f} cycles/s  {cost.rate / first:5.2f}x  {whole(cost):5.1f} ms CPU"
        print(f"{count} of each: {figures}  {cores:.1f} cores, foreign cores {cost.foreign_cores:.2f}", flush=True)


if __name__ == "__main__":
    main()
