"""How many decisions a second does one workspace take, and which rows do its transactions wait for?

    make bench ARGS="hot_rows [--processes 8] [--cycles 100] [--rounds 3]"

Processes drive the verbs of cycles, without HTTP, queues, model and tool, beside Postgres with fsync on. A cycle is a message, a
turn that proposes two calls, a decision about the first, both results, and the last turn; a standing grant allows the second call.
First each process has a workspace of its own, then all share one workspace, agent and person, who has a daily and the workspace a
monthly spend limit: so all count in the same rows. Prints for both

    decisions      per second, while nothing else happens
    cycles         per second
    waiting        processes that wait for a lock, on average, and what their statements begin with

and the ratio of the rates. Fails if fewer than 200 decisions a second are taken together, or if the ratio is below 0.8.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from benchmarks.house import Servers, environment, servers
from benchmarks.meters import spin_ms

GOAL = 200
LEAST_RATIO = 0.8
SAMPLE_SECONDS = 0.005
_WAITING = """
    SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 60) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND backend_type = 'client backend'
"""


class Waits:
    """Samples the statements that wait for locks, within a `with`."""

    def __init__(self, admin_url: str) -> None:
        self.admin_url = admin_url
        self.samples = 0
        self.statements: collections.Counter[str] = collections.Counter()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._sample)

    def __enter__(self) -> "Waits":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _sample(self) -> None:
        with psycopg.connect(self.admin_url, autocommit=True) as db:
            while not self.over.wait(SAMPLE_SECONDS):
                self.samples += 1
                self.statements.update(statement for (statement,) in db.execute(_WAITING))

    def show(self) -> str:
        """Return the processes that waited on average, and their three most frequent statements."""
        most = (f"{count / self.samples:.2f} {statement}" for statement, count in self.statements.most_common(3))
        return f"{self.statements.total() / self.samples:.2f}" + "".join(f"\n        {line}" for line in most)


@dataclass
class Driver:
    """Drives cycles of one agent, in this process."""

    workspace_id: str
    agent_id: str
    person_id: str
    parked: list[tuple[str, Any]] = field(default_factory=list)

    @classmethod
    def founding(cls) -> "Driver":
        """Return the driver of a new workspace, whose agent has a standing grant, and whose spend is limited."""
        from people import member
        from rows.spending import MODEL, QUOTE, limit
        from rows.stage import Stage, call

        stage = Stage()
        stage.quote = QUOTE
        person_id = member(stage, "approver").person_id
        session = stage.session(model=MODEL, bash="always_ask", write="always_ask", on_behalf_of=person_id)
        limit(stage, str(10**9))
        limit(stage, str(10**9), ("user", person_id), "daily")
        stage.confirm(session, stage.propose(session, call("write", file_path="a", content="b")).id, scope="always")
        return cls(stage.workspace_id, stage.read(session).agent_id, person_id)

    def __post_init__(self) -> None:
        from rows.spending import QUOTE
        from rows.stage import ALL_SCOPES, Stage

        from models.audit.principal import Principal

        self.stage = object.__new__(Stage)
        self.stage.workspace_id, self.stage.quote = self.workspace_id, QUOTE
        self.stage.principal = Principal("api_key", "key_bench", self.workspace_id, ALL_SCOPES)

    def park(self, count: int) -> None:
        """Begin so many cycles, up to their decisions."""
        from rows.spending import COSTS_10, MODEL
        from rows.stage import call

        for _ in range(count):
            session = self.stage.session(of_agent=self.agent_id, model=MODEL, on_behalf_of=self.person_id)
            self.stage.message(session)
            proposals = (call("bash", command="make deploy"), call("write", file_path="a", content="b"))
            self.parked.append((session, self.stage.reply(session, *proposals, charge=COSTS_10)))

    def decide(self) -> None:
        """Decide what is parked."""
        for session, (asked, _) in self.parked:
            self.stage.confirm(session, asked.id)

    def end(self) -> None:
        """Run what is decided to its end."""
        from rows.spending import COSTS_10
        from rows.stage import say

        for session, calls in self.parked:
            for each in calls:
                self.stage.run_call(each)
            self.stage.reply(session, say("Done."), charge=COSTS_10)
        self.parked.clear()


def drive() -> None:
    """Do what the lines of the input say."""
    driver: Driver | None = None
    for line in sys.stdin:
        what, value = json.loads(line)
        if what == "found":
            driver = Driver.founding()
        elif what == "join":
            driver = Driver(*value)
        assert driver
        if what in {"park", "decide", "end"}:
            getattr(driver, what)(*value)
        print(json.dumps([driver.workspace_id, driver.agent_id, driver.person_id]), flush=True)


class Fleet:
    """The processes that drive."""

    def __init__(self, on: Servers, processes: int) -> None:
        env = environment(on) | {"ANTHROPIC_API_KEY": "none", "PYTHONPATH": os.environ["PYTHONPATH"]}
        command = [sys.executable, __file__, "--drive"]
        self.processes = [
            subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)
        ]

    def ask(self, what: str, *value: Any, of: int | None = None) -> list[Any]:
        """Have the first `of` processes, or all, do something at once, and return what each says."""
        chosen = self.processes[:of]
        for process in chosen:
            assert process.stdin
            print(json.dumps([what, value]), file=process.stdin, flush=True)
        return [json.loads(process.stdout.readline()) for process in chosen if process.stdout]

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.terminate()
            process.wait()


def measure(fleet: Fleet, cycles: int, rounds: int, admin_url: str) -> tuple[float, float, str]:
    """Return the decisions and the cycles per second, and what waited."""
    fleet.ask("park", 3)
    fleet.ask("decide")
    fleet.ask("end")
    deciding, whole = 0.0, 0.0
    with Waits(admin_url) as waits:
        for _ in range(rounds):
            parking = _seconds(lambda: fleet.ask("park", cycles))
            decided = _seconds(lambda: fleet.ask("decide"))
            whole += parking + decided + _seconds(lambda: fleet.ask("end"))
            deciding += decided
    count = len(fleet.processes) * cycles * rounds
    return count / deciding, count / whole, waits.show()


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def main() -> int:
    """Measure, and print. Returns 1 if a bound is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--processes", type=int, default=8)
    options.add_argument("--cycles", type=int, default=100, help="of each process and round")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.drive:
        drive()
        return 0
    rates = {}
    with servers() as on:
        fleet = Fleet(on, chosen.processes)
        try:
            for name in ("apart", "together"):
                founded = fleet.ask("found", of=None if name == "apart" else 1)[0]
                if name == "together":
                    fleet.ask("join", *founded)
                decisions, cycles, waits = measure(fleet, chosen.cycles, chosen.rounds, on.postgres.url("postgres"))
                rates[name] = (decisions, cycles)
                print(
                    f"{name:9} {decisions:7.0f} decisions/s  {cycles:6.0f} cycles/s   spin {spin_ms()} ms   waiting {waits}",
                    flush=True,
                )
        finally:
            fleet.close()
    ratios = [together / apart for apart, together in zip(*rates.values(), strict=True)]
    print("together, over apart: decisions {:.2f}, cycles {:.2f}".format(*ratios))
    return int(rates["together"][0] < GOAL or min(ratios) < LEAST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
