"""Do the calls of one turn run side by side on the tools processes? And what does a call cost, compared with a bare Celery task?

    make bench ARGS="parallel [--calls 100] [--processes 4] [--nap 0.5]"

One turn asks for all calls of a tool that takes `nap` seconds. Measured is the time from the first claim to the turn's end, over
the least possible time, ceil(calls / processes) naps, and the same for bare tasks on the same pool. A second run has a tool that
takes no time: it shows what a call costs. Read the ratios.
"""

import argparse
import contextlib
import math
import time
import uuid
from collections.abc import Iterator

import psycopg
from benchmarks.driver import Driver, message
from benchmarks.floors import BareTasks
from benchmarks.house import House, Servers, house, servers
from benchmarks.meters import spin_ms

TOOLSET = "assent:naps"


class Naps(Driver):
    """Turns that ask for many calls at once."""

    def __init__(self, at: House) -> None:
        super().__init__(at)
        toolset = {
            "type": "mcp_toolset",
            "mcp_server_name": "naps",
            "default_config": {"permission_policy": {"type": "always_allow"}},
        }
        server = {"type": "url", "name": "naps", "url": TOOLSET}
        body = {"name": "naps", "model": "claude-bench", "tools": [toolset], "mcp_servers": [server]}
        self.session |= {"agent": self._post("/v1/agents", body)["id"]}

    def run(self, calls: int, seconds: float) -> float:
        """Return the seconds from the first call's claim to the claim of the next turn."""
        lines = [f'call mcp__naps__nap {{"seconds": {seconds}, "number": {n}}}' for n in range(calls)]
        self.session |= {"initial_events": [message("\n".join([*lines, "then", "say done"]))]}
        mine = self.start()
        first = last = 0
        self.heard = time.monotonic()
        while True:
            for kind, session_id, _, at in self.read():
                if session_id == mine and kind == "T":
                    first = first or at
                if session_id == mine and kind == "C":
                    last = at
                if session_id == mine and kind == "D":
                    return (last - first) / 1e9


class BareNaps(BareTasks):
    """The same with bare Celery tasks."""

    def run(self, calls: int, seconds: float) -> float:
        """Return the seconds from sending the tasks to the last one's end."""
        mine = uuid.uuid4().hex
        began = time.monotonic_ns()
        for _ in range(calls):
            self.celery.send_task("tool.nap", (mine, seconds), queue="tools", retry=False)
        self.heard = time.monotonic()
        done = last = 0
        while done < calls:
            for kind, cycle_id, _, at in self.read():
                done, last = (done + 1, at) if (kind, cycle_id) == ("N", mine) else (done, last)
        return (last - began) / 1e9


@contextlib.contextmanager
def ready(on: Servers, processes: int) -> Iterator[House]:
    """Run all of Assent, with tools workers that have announced the toolset."""
    with house(on, tools=processes, ASSENT_TOOLSETS="benchmarks.naps:naps") as at:
        deadline = time.monotonic() + 60
        with psycopg.connect(at.admin_url, autocommit=True) as db:
            while not db.execute("SELECT 1 FROM toolset WHERE name = 'naps'").fetchone():
                assert time.monotonic() < deadline, "no worker announces the toolset"
                time.sleep(0.1)
        yield at


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=100)
    options.add_argument("--processes", type=int, default=4)
    options.add_argument("--nap", type=float, default=0.5)
    chosen = options.parse_args()
    with servers() as on, ready(on, chosen.processes) as at:
        ours, bare = Naps(at), BareNaps(at, on.redis_url)
        ours.run(chosen.processes * 2, 0.1)  # every process has started its toolset
        least = math.ceil(chosen.calls / chosen.processes) * chosen.nap
        print(f"{chosen.calls} calls of one turn on {chosen.processes} processes; a spin takes {spin_ms():.1f} ms")
        print(f"{'':26}{'s':>9}{'over the least':>16}")
        for name, way in (("assent", ours), ("bare Celery tasks", bare)):
            took = way.run(chosen.calls, chosen.nap)
            print(f"{name + f', {chosen.nap} s each':26}{took:9.2f}{took / least:16.2f}")
        print(f"\n{'':26}{'ms a call':>9}{'over bare':>16}")
        costs = {
            name: way.run(chosen.calls, 0) / chosen.calls * 1000 for name, way in (("assent", ours), ("bare Celery tasks", bare))
        }
        for name, each in costs.items():
            print(f"{name + ', no time each':26}{each:9.2f}{each / costs['bare Celery tasks']:16.1f}")
        for way in (ours, bare):
            way.close()


if __name__ == "__main__":
    main()
