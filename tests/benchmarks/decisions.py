"""What an approval and what a grant add to the way from a message to its tool, beside the same call under policy allow.

    make bench ARGS="decisions [--cycles 60]"

Three agents take turns, one cycle at a time: a policy allows the first one's tool, a standing grant the second one's, and a person
allows the third one's at once. Measured is the time from posting the message to the tool's claim, in ms; read the medians'
differences (targets: 50 ms for an approval, 5 ms for a grant) and their ratios, never the times themselves.
"""

import argparse
import statistics
import time
from typing import Any

from benchmarks.driver import Driver
from benchmarks.house import House, house, servers
from benchmarks.meters import percentile, spin_ms


class Path(Driver):
    """Cycles of an agent with one policy for its tool."""

    def __init__(self, at: House, policy: str, decision: dict[str, Any] | None = None) -> None:
        super().__init__(at)
        toolset = {
            "type": "agent_toolset_20260401",
            "default_config": {"enabled": True, "permission_policy": {"type": policy}},
        }
        agent = self._post("/v1/agents", {"name": policy, "model": "claude-bench", "tools": [toolset]})
        self.session |= {"agent": agent["id"]}
        self.decision = decision or {}

    def allow(self, session_id: str, call_id: str) -> None:
        """Send the decision, with this path's further fields."""
        confirmation = {"type": "user.tool_confirmation", "tool_use_id": call_id, "result": "allow", **self.decision}
        self._post(f"/v1/sessions/{session_id}/events", {"events": [confirmation]})

    def once(self) -> float:
        """Run one cycle. Returns the milliseconds from posting the message to the tool's claim."""
        began = time.monotonic_ns()
        mine = self.start()
        claimed, over = 0, False
        while not over:
            for kind, session_id, call_id, at in self.read():
                if session_id != mine:
                    continue
                if kind == "P":
                    self.allow(mine, call_id)
                claimed = at if kind == "T" else claimed
                over = over or kind == "D"
        return (claimed - began) / 1e6


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cycles", type=int, default=60)
    cycles = options.parse_args().cycles
    with servers() as on, house(on) as at:
        allowed = Path(at, "always_allow")
        granted = Path(at, "always_ask", {"scope": "always"})
        people = Path(at, "always_ask")
        paths = {"policy allows": allowed, "a grant allows": granted, "a person allows": people}
        for path in paths.values():
            path.once()
            path.once()
        times: dict[str, list[float]] = {name: [] for name in paths}
        for _ in range(cycles):
            for name, path in paths.items():
                times[name].append(path.once())
        base = statistics.median(times["policy allows"])
        print(f"{cycles} cycles of each, one at a time; a spin takes {spin_ms():.1f} ms")
        print(f"{'':18}{'p50 ms':>9}{'p95':>9}{'adds ms':>9}{'ratio':>8}")
        for name, values in times.items():
            middle = statistics.median(values)
            print(f"{name:18}{middle:9.1f}{percentile(values, 95):9.1f}{middle - base:9.1f}{middle / base:8.2f}")
        for path in paths.values():
            path.close()


if __name__ == "__main__":
    main()
