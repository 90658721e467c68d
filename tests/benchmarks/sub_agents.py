"""What do sub-agents cost, compared with sessions of their own? And what do threads cost that share the lock of one session?

    make bench ARGS="sub_agents [--rounds 12] [--children 10] [--busy 25] [--calls 8]"

Gated: a coordinator gives tasks to `children` sub-agents, each of which makes one call that a person allows; beside it as many
plain sessions with one such call each. Printed are the CPU per call, and the turns in which the coordinator read the reports.

Busy: `busy` sub-agents make `calls` allowed calls each, one after the other, all under the lock of one session; beside them as many
sessions that do the same. Printed are the calls per second and the CPU per call. Read the ratios.
"""

import argparse
import json
import statistics

import psycopg
from benchmarks.driver import PROMPT, Driver, message
from benchmarks.gated_cycle import whole
from benchmarks.house import House, house, servers
from benchmarks.meters import Cost, Meter, spin_ms

CALL = 'call glob {"pattern": "*.none"}'
_REPORT_TURNS = """
    SELECT count(DISTINCT turn_id) FROM event WHERE type = 'agent.thread_message_received' AND session_id = ANY (%s)
    AND thread_id IN (SELECT id FROM thread WHERE parent_id IS NULL)
"""


class Sessions(Driver):
    """Plain sessions, each with one agent."""

    def __init__(self, at: House, prompt: str, policy: str, size: int) -> None:
        super().__init__(at)
        self.size = size
        tool = {"name": "glob", "enabled": True, "permission_policy": {"type": policy}}
        self.tools = [{"type": "agent_toolset_20260401", "default_config": {"enabled": False}, "configs": [tool]}]
        self.member = self._post("/v1/agents", {"name": "Member", "model": "claude-bench", "tools": self.tools})["id"]
        self.session |= {"agent": self.member, "initial_events": [message(prompt)]}

    def rounds(self, count: int) -> None:
        """Run `count` times `size` sessions side by side."""
        for _ in range(count):
            self.cycles(self.size, self.size)


class Crews(Sessions):
    """Coordinators, each with sub-agents that do what the plain sessions do."""

    def __init__(self, at: House, prompt: str, policy: str, size: int) -> None:
        super().__init__(at, prompt, policy, size)
        roster = {"type": "coordinator", "agents": [{"type": "agent", "id": self.member}]}
        lead = self._post("/v1/agents", {"name": "Lead", "model": "claude-bench", "tools": self.tools, "multiagent": roster})
        # The report is the script of the coordinator's next turn.
        task = json.dumps({"agent": "Member", "message": prompt.replace("say done", "say say done")})
        script = "\n".join([f"call send_to_agent {task}"] * size + ["then", "say I wait."])
        self.session |= {"agent": lead["id"], "initial_events": [message(script)]}
        self.crews: list[str] = []
        self.parked: set[str] = set()

    def start(self) -> str:
        session_id = super().start()
        self.crews.append(session_id)
        return session_id

    def allow(self, session_id: str, _: str) -> None:
        """Allow the calls of all sub-agents, one by one, as soon as all of them wait."""
        if session_id not in self.parked:
            self.parked.add(session_id)
            for each in self._request("GET", f"/v1/sessions/{session_id}")["waiting_on"]:
                super().allow(session_id, each["tool_use_id"])

    def rounds(self, count: int) -> None:
        """Run `count` crews, one after the other."""
        self.cycles(count, 1)


def measure(at: House, way: Sessions, rounds: int, calls: int) -> Cost:
    """Return the cost of each call."""
    way.rounds(1)
    with psycopg.connect(at.admin_url, autocommit=True) as db:
        db.execute("ANALYZE")
    meter = Meter(at.admin_url, at.pids, at.counts)
    before = meter.read()
    way.rounds(rounds)
    return Cost.between(before, meter.read(), rounds * way.size * calls)


def compare(at: House, title: str, ways: tuple[Sessions, Crews], rounds: int, calls: int) -> None:
    """Measure both ways in turns, and print the cost of a call and the ratios of crews to sessions."""
    pairs = [tuple(measure(at, way, max(1, rounds // 3), calls) for way in ways) for _ in range(3)]
    print(f"\n{title}\n{'':16}{'calls/s':>9}{'CPU ms':>9}{'write tx':>10}{'statements':>12}{'foreign':>9}")
    for name, costs in zip(("sessions", "sub-agents"), zip(*pairs, strict=True), strict=True):
        figures = [statistics.median(of) for of in zip(*map(_figures, costs), strict=True)]
        print(f"{name:16}{figures[0]:9.1f}{figures[1]:9.1f}{figures[2]:10.1f}{figures[3]:12.0f}{figures[4]:9.2f}")
    cpu = statistics.median(whole(crew) / whole(plain) for plain, crew in pairs)
    rate = statistics.median(crew.rate / plain.rate for plain, crew in pairs)
    print(f"sub-agents cost {cpu:.2f} times the CPU of sessions, at {rate:.2f} times their rate", flush=True)


def _figures(cost: Cost) -> tuple[float, ...]:
    return cost.rate, whole(cost), cost.write_tx, cost.statements, cost.foreign_cores


def main() -> None:
    """Print both tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=12)
    options.add_argument("--children", type=int, default=10)
    options.add_argument("--busy", type=int, default=25)
    options.add_argument("--calls", type=int, default=8)
    chosen = options.parse_args()
    with servers() as on, house(on) as at:
        print(f"a spin takes {spin_ms():.1f} ms")
        size = chosen.children
        ways = Sessions(at, PROMPT, "always_ask", size), Crews(at, PROMPT, "always_ask", size)
        compare(at, f"gated: {size} at a time, one call each", ways, chosen.rounds, 1)
        with psycopg.connect(at.admin_url) as db:
            row = db.execute(_REPORT_TURNS, [ways[1].crews]).fetchone()
        assert row
        print(f"a coordinator read {size} reports in {row[0] / len(ways[1].crews):.1f} turns")
        busy = "\nthen\n".join([CALL] * chosen.calls + ["say done"])
        ways = Sessions(at, busy, "always_allow", chosen.busy), Crews(at, busy, "always_allow", chosen.busy)
        compare(at, f"busy: {chosen.busy} at a time, {chosen.calls} calls each", ways, chosen.rounds // 4, chosen.calls)
        for way in ways:
            way.close()


if __name__ == "__main__":
    main()
