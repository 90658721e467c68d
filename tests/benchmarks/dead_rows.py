"""Do claims slow down by the dead rows of an hour, which a held snapshot keeps from being removed?

    make bench ARGS="dead_rows [--cycles 72000] [--rounds 40]"

A backup or a forgotten transaction holds a snapshot; vacuum then removes nothing that was alive in it. Two databases of one
Postgres have the same workspace, with a standing grant and two spend limits. In one of them a snapshot is held, and SQL leaves the
dead rows of so many cycles (72,000: an hour at 20 a second): the versions of the workspace's shared rows, and those of rows that
were queued, running or waiting. Then the verbs of cycles and the looks of the sweeps run in both, block by block in turns. Prints
the medians in ms and the ratio. `--without spend_sum` leaves the versions of one shared table out. Fails if a verb is above 1.5.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
from benchmarks.copies import Db, copy
from benchmarks.house import Servers, environment, servers
from benchmarks.meters import spin_ms, timed
from own_database import make_url

BOUND = 1.5
BLOCK = 5
SWEEP_CYCLES = 300
"""Cycles between two sweeps that add up uses: 15 s at 20 a second."""
FLOOR_MS = 0.2
"""Added to both figures of a ratio, because a query in memory takes less than the noise of its measurement."""
SHARED: dict[str, tuple[str, float]] = {
    "spend_sum": ("number = number + 1, spent = spent + 1", 4),
    "daily_usage": ("requests = requests + 1", 1 / SWEEP_CYCLES),
    "approval_grant": ("uses = uses + 1", 1 / SWEEP_CYCLES),
}
"""The rows that all cycles of a workspace change, with the change and how often a cycle makes it."""
_AGAIN = """
DO $$
DECLARE at tid; one record;
BEGIN
    FOR one IN SELECT ctid FROM {table} LOOP
        at := one.ctid;
        FOR n IN 1..{times} LOOP
            UPDATE {table} SET {change} WHERE ctid = at RETURNING ctid INTO at;
        END LOOP;
    END LOOP;
END $$
"""
"""Changes each row of a table many times. It names the newest version by its place, since a search would pass all others."""
_MOVES = (
    "UPDATE turn_usage SET summed = true WHERE turn_id LIKE '%_bench%'",
    "DELETE FROM grant_use WHERE id LIKE '%_bench%'",
    "UPDATE turn SET status = 'running', fence = fence + 1, lease_until = due_at, worker = 'w' WHERE id LIKE '%_bench%'",
    "UPDATE turn SET status = 'done' WHERE id LIKE '%_bench%'",
    "UPDATE tool_call SET status = 'queued' WHERE id LIKE '%_bench%'",
    "UPDATE tool_call SET status = 'running', lease_until = due_at WHERE id LIKE '%_bench%'",
    "UPDATE tool_call SET status = 'done', settled_at = due_at WHERE id LIKE '%_bench%'",
    "UPDATE approval SET status = 'allowed', decided_at = expires_at WHERE id LIKE '%_bench%'",
    "UPDATE session SET status = 'idle' WHERE id LIKE '%_bench%'",
)

Figures = dict[str, list[float]]


class Side:
    """One database, and the process that drives its workspace."""

    def __init__(self, on: Servers, name: str) -> None:
        admin_url = make_url(on.postgres.url("postgres"), name)
        self.admin: Db = psycopg.connect(admin_url, autocommit=True)
        self.holder = psycopg.connect(admin_url)
        urls = {key: make_url(on.postgres.url(role), name) for key, role in (("", "app"), ("SYSTEM_", "system"))}
        env = environment(on) | {f"DATABASE_{key}URL": url for key, url in urls.items()} | {"ANTHROPIC_API_KEY": "none"}
        env["PYTHONPATH"] = os.environ["PYTHONPATH"]
        command = [sys.executable, __file__, "--drive"]
        self.driver = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.figures: Figures = {}
        self.ask(1)
        self.admin.execute("VACUUM ANALYZE")

    def ask(self, rounds: int) -> Figures:
        """Have the driver run rounds, and return their figures."""
        assert self.driver.stdin
        assert self.driver.stdout
        print(rounds, file=self.driver.stdin, flush=True)
        figures: Figures = json.loads(self.driver.stdout.readline())
        return figures

    def leave_dead_rows(self, cycles: int, shared: dict[str, tuple[str, float]]) -> None:
        """Hold a snapshot, and leave the dead rows of so many cycles."""
        self.holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.holder.execute("SELECT count(*) FROM session")
        session, turn, tool_call = "'sesn_bench' || n", "'turn_bench' || n", "'sevt_bench' || n"
        [(waiting,)] = self.admin.execute("SELECT session_id FROM approval WHERE status = 'pending' LIMIT 1").fetchall()
        due_at = "now() - interval '1 hour' + n * interval '50 ms'"
        copies = {
            "session": {"id": session, "turn_id": turn},
            "turn": {"id": turn, "session_id": session, "status": "'queued'", "due_at": due_at},
            "tool_call": {"id": tool_call, "session_id": session, "turn_id": turn, "due_at": due_at},
            "approval": {"id": "'appr_bench' || n", "session_id": session, "tool_call_id": tool_call},
            "turn_usage": {"turn_id": turn, "attempt": "n", "session_id": session, "summed": "false"},
        }
        for table, changed in copies.items():
            of_it = "id" if table == "session" else "session_id"
            copy(self.admin, table, f"{of_it} = '{waiting}'", changed, cycles)
        copy(self.admin, "grant_use", "true", {"id": "'guse_bench' || n"}, cycles)
        self.admin.execute("SET session_replication_role = replica")
        for move in _MOVES:
            self.admin.execute(move)
        self.admin.execute("SET enable_seqscan = off")  # a table of one page would be read whole for each change
        for table, (change, times) in shared.items():
            self.admin.execute(_AGAIN.format(table=table, change=change, times=int(times * cycles)))
        self.admin.execute("VACUUM ANALYZE")  # as autovacuum would: it removes nothing that the snapshot may see

    def close(self) -> None:
        """End the driver."""
        self.driver.terminate()
        self.driver.wait()


def drive() -> None:
    """Run as many rounds as each line of the input says."""
    from benchmarks.hot_rows import Driver
    from rows.stage import call

    driver = Driver.founding()
    parked = driver.stage.session(of_agent=driver.agent_id)
    driver.stage.propose(parked, call("bash", command="make deploy"))
    for line in sys.stdin:
        figures: Figures = {}
        for _ in range(int(line)):
            _round(driver, figures)
        print(json.dumps(figures), flush=True)


def _round(driver: Any, figures: Figures) -> None:
    from rows.spending import COSTS_10, MODEL
    from rows.stage import call, say

    from models.operate import due, late_sums, queued
    from models.session.tool_call.row import ToolCall
    from models.session.turn.row import Turn

    def measure(name: str, verb: Callable[[], Any]) -> Any:
        result: list[Any] = []
        figures.setdefault(name, []).append(1000 * timed(lambda: result.append(verb())))
        return result[0]

    stage = driver.stage
    session = stage.session(of_agent=driver.agent_id, model=MODEL, on_behalf_of=driver.person_id)
    measure("message", partial(stage.message, session))
    turn = measure("claim of a turn", partial(stage.begin, session))
    proposals = (call("bash", command="make deploy"), call("write", file_path="a", content="b"))
    asked, granted = measure("checkpoint", partial(stage.reply, session, *proposals, turn=turn, charge=COSTS_10))
    measure("decision", partial(stage.confirm, session, asked.id))
    for name, each in (("of a call", asked), ("of a granted call", granted)):
        held = measure(f"claim {name}", partial(stage.begin_call, each))
        measure("result", partial(stage.finish_call, held))
    stage.reply(session, say("Done."), charge=COSTS_10)
    measure("sweeps: due turns", lambda: queued.hints(Turn))
    measure("sweeps: due calls", lambda: queued.hints(ToolCall))
    measure("sweeps: lapsed turns", lambda: due.lapsed(Turn))
    measure("sweeps: lapsed calls", lambda: due.lapsed(ToolCall))
    measure("sweeps: overdue approvals", due.overdue_approvals)
    measure("sweeps: reminders", due.approvals_to_remind)
    measure("sweeps: uses", lambda: late_sums.add_up(stage.workspace_id))


def show(clean: Side, dead: Side) -> float:
    """Print the table. Returns the highest ratio of a verb: a sweep, which looks from the beginning, runs every few seconds."""
    print(f"{'ms, medians':28} {'none dead':>10} {'an hour':>10}  ratio   spin {spin_ms()} ms")
    highest = 0.0
    for name, values in clean.figures.items():
        a, b = statistics.median(values), statistics.median(dead.figures[name])
        ratio = (b + FLOOR_MS) / (a + FLOOR_MS)
        highest = max(highest, 0 if name.startswith("sweeps") else ratio)
        print(f"{name:28} {a:10.2f} {b:10.2f}  {ratio:5.2f}", flush=True)
    return highest


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cycles", type=int, default=72_000)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--without", choices=SHARED, action="append", default=[])
    options.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.drive:
        drive()
        return 0
    with servers() as on:
        with psycopg.connect(on.postgres.url("postgres", "postgres"), autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET autovacuum = off")
            admin.execute("SELECT pg_reload_conf()")
            for name in ("clean", "dead"):
                admin.execute(f"CREATE DATABASE {name} TEMPLATE assent OWNER assent_owner")
        sides = Side(on, "clean"), Side(on, "dead")
        dead = sides[1]
        try:
            shared = {table: change for table, change in SHARED.items() if table not in chosen.without}
            seconds = timed(lambda: dead.leave_dead_rows(chosen.cycles, shared))
            print(f"the dead rows of {chosen.cycles} cycles made in {seconds:.0f} s")
            dead.admin.execute("CHECKPOINT")
            for number in range(chosen.rounds // BLOCK + 2):
                for side in sides:
                    for name, values in side.ask(BLOCK).items():
                        side.figures.setdefault(name, []).extend(values if number > 1 else [])  # Postgres chooses plans first
            return int(show(*sides) > BOUND)
        finally:
            for side in sides:
                side.close()


if __name__ == "__main__":
    sys.exit(main())
