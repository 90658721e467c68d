"""Do inserts and claims slow down from one million events to ten? Decides whether tables have to be partitioned by time.

    make bench ARGS="millions [--events 10000000] [--rounds 200] [--folder DIR]"

Two databases of one Postgres have a tenth of the events and all of them, as sessions with one gated call each: copies of a session
that Assent's verbs wrote, in every table, with ids and times in order. Two processes drive the real verbs, block by block in turns,
so that both databases meet the same noise. Prints medians in ms for both, and their ratio:

    new session   a message (event, turn, acts), the turn's claim, its checkpoint, the decision, the call's claim, its result
    old session   a message into a session that is drawn by lot from all of them, and the claim of its turn
    bulk          1,000 events, and 1,000 acts of the audit, in one statement
    sweeps        the look of the dispatch sweep for due turns, and for due calls

Fails above a ratio of 1.2. Ten million events take 16 GB below `--folder` (the system's temporary folder unless given) and some
minutes; both are gone afterwards.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.copies import Db, number
from benchmarks.house import Servers, environment, servers
from benchmarks.meters import spin_ms, timed
from own_database import make_url

BOUND = 1.2
SHARE = 10
"""The small database has this part of the events."""
BYTES_PER_EVENT = 1700
"""With all other rows of its session."""
WAL_BYTES = 5_000_000_000
CHUNK = 10_000
"""Sessions that one statement per table copies."""
BLOCK = 10
"""Rounds of one database before the other's turn."""
FLOOR_MS = 0.1
"""Added to both figures of a ratio, because a query in memory takes less than the noise of its measurement."""
OF_CALLS = "tool_call_id IN (SELECT id FROM tool_call WHERE session_id = '{}')"
BESIDE = {
    "session": "id = '{}'",
    "reply": "turn_id IN (SELECT id FROM turn WHERE session_id = '{}')",
    "audit": "chain = '{}'",
    "audit_text": "chain = '{}'",
    "call_input": OF_CALLS,
    "call_result": OF_CALLS,
}
"""Tables whose rows belong to a session without naming it in `session_id`."""
COLUMNS = """
    SELECT table_name, column_name, data_type FROM information_schema.columns JOIN information_schema.tables USING (table_name)
    WHERE columns.table_schema = 'public' AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'
    ORDER BY table_name, ordinal_position
"""
_NAMES = "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position"

Figures = dict[str, list[float]]
"""Milliseconds of each round, by what was measured."""


def gated_session(stage: Any, measure: Callable[[str, Callable[[], Any]], Any]) -> str:
    """Run a session with one gated call, each verb through `measure`. Returns the session's id."""
    from rows.stage import call, say

    session_id: str = stage.session()
    measure("message", lambda: stage.message(session_id))
    turn = measure("claim of a turn", lambda: stage.begin(session_id))
    [asked] = measure("checkpoint", lambda: stage.reply(session_id, call(command="make deploy"), turn=turn))
    measure("decision", lambda: stage.confirm(session_id, asked.id))
    held = measure("claim of a call", lambda: stage.begin_call(asked))
    measure("result", lambda: stage.finish_call(held))
    stage.reply(session_id, say("Done."))
    return session_id


class Side:
    """One database, filled with copies of a session, and the process that drives it."""

    def __init__(self, on: Servers, name: str, program: str = __file__) -> None:
        urls = {key: make_url(on.postgres.url(role), name) for key, role in (("", "app"), ("SYSTEM_", "system"))}
        env = environment(on) | {f"DATABASE_{key}URL": url for key, url in urls.items()} | {"ANTHROPIC_API_KEY": "none"}
        env |= {name: value for name, value in os.environ.items() if name.startswith(("ASSENT_", "BENCH_"))}
        env["PYTHONPATH"] = os.environ.get("PYTHONPATH", "") + os.pathsep + env["PYTHONPATH"]
        self.admin: Db = psycopg.connect(make_url(on.postgres.url("postgres"), name), autocommit=True)
        env["BENCH_ADMIN_URL"] = make_url(on.postgres.url("postgres"), name)
        command = [sys.executable, program, "--drive"]
        self.driver = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.first = self.ask("first", 0)["session_id"]
        self.events_each = number(self.admin, f"SELECT count(*) FROM event WHERE session_id = '{self.first}'")
        self.sessions = 0
        self.figures: Figures = {}

    def ask(self, what: str, count: int) -> Any:
        """Have the driver do something, and return what it says."""
        assert self.driver.stdin
        assert self.driver.stdout
        print(json.dumps([what, count]), file=self.driver.stdin, flush=True)
        return json.loads(self.driver.stdout.readline())

    def fill(self, events: int) -> None:
        """Copy the first session until there are so many events."""
        sessions = events // self.events_each
        self.admin.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        self.admin.execute("UPDATE turn_usage SET summed = true")  # as a sweep has done with all but the newest
        statements = list(self._copying(sessions))
        for first in range(1, sessions + 1, CHUNK):
            for statement in statements:
                self.admin.execute(statement, {"first": first, "last": min(first + CHUNK - 1, sessions)})
        self.sessions = sessions
        self.admin.execute("VACUUM ANALYZE")

    def _copying(self, sessions: int) -> Iterator[str]:
        """Yield the statement of each table that has rows of the first session."""
        tables: dict[str, dict[str, str]] = {}
        for table, column, kind in self.admin.execute(COLUMNS):
            tables.setdefault(str(table), {})[str(column)] = str(kind)
        for table, columns in tables.items():
            of_first = BESIDE.get(table, "session_id = '{}'" if "session_id" in columns else "").format(self.first)
            if of_first and number(self.admin, f"SELECT count(*) FROM {table} WHERE {of_first}"):
                names = ", ".join(f'"{name}"' for name in columns)
                values = ", ".join(_copied(name, kind, sessions) for name, kind in columns.items())
                yield (
                    f"INSERT INTO {table} ({names}) SELECT {values} FROM (SELECT * FROM {table} WHERE {of_first}) AS row,"
                    " generate_series(%(first)s::int, %(last)s::int) AS n"
                )

    def measure(self, rounds: int) -> None:
        """Add the figures of some rounds."""
        for name, values in self.ask("measure", rounds).items():
            self.figures.setdefault(name, []).extend(values)

    def close(self) -> None:
        """End the driver."""
        self.driver.terminate()
        self.driver.wait()
        self.admin.close()


@contextmanager
def two_databases(program: str, counts: tuple[int, int], fill: Callable[[Side, int], None]) -> Iterator[tuple[Side, Side]]:
    """Give two databases of one Postgres, which `fill` has filled to these counts. A process of `program` drives each."""
    with servers() as on:
        with psycopg.connect(on.postgres.url("postgres", "postgres"), autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET autovacuum = off")  # `fill` does it before the measurement
            admin.execute("SELECT pg_reload_conf()")
            for name in ("small", "large"):
                admin.execute(f"CREATE DATABASE {name} TEMPLATE assent OWNER assent_owner")
        sides = Side(on, "small", program), Side(on, "large", program)
        try:
            for side, count in zip(sides, counts, strict=True):
                print(f"{count} made in {timed(lambda side=side, count=count: fill(side, count)):.0f} s", flush=True)
            yield sides
        finally:
            for side in sides:
                side.close()


def measure_in_turns(sides: tuple[Side, Side], rounds: int, block: int) -> None:
    """Measure both sides `rounds` times, `block` rounds of one before the other's turn."""
    sides[0].admin.execute("CHECKPOINT")  # else Postgres writes the rows to the disk while it is measured
    for side in sides:
        side.measure(2)  # in which Postgres chooses plans
        side.figures.clear()
    for _ in range(-(-rounds // block)):
        for side in sides:
            side.measure(min(block, rounds))


def _copied(name: str, kind: str, sessions: int) -> str:
    """Return the SQL of a copy's column: ids have its number in the place of their time, times its order."""
    column = f'row."{name}"'
    if kind.startswith("timestamp"):
        return f"{column} - ({sessions} - n) * interval '5 seconds'"
    if kind != "character varying":
        return column
    changed = f"left({column}, -26) || lpad(n::text, 10, '0') || right({column}, 16)"
    return f"CASE WHEN {column} ~ '^(sesn|sthr|turn|sevt|appr|grnt|att)[a-z]*_[0-9A-Z]{{26}}$' THEN {changed} ELSE {column} END"


def drive() -> None:
    """Do what the standard input says, with the database that the environment names."""
    from rows.stage import Stage

    stage = Stage()
    first = gated_session(stage, lambda _, verb: verb())
    with psycopg.connect(os.environ["BENCH_ADMIN_URL"], autocommit=True) as admin:
        for line in sys.stdin:
            what, count = json.loads(line)
            if what == "first":
                reply: Any = {"session_id": first}
            else:
                figures: Figures = {}
                for _ in range(count):
                    _round(stage, admin, first, figures)
                reply = figures
            print(json.dumps(reply), flush=True)


def _round(stage: Any, admin: Db, first: str, figures: Figures) -> None:
    from models.operate import queued
    from models.session.tool_call.row import ToolCall
    from models.session.turn.row import Turn

    def measure(name: str, verb: Callable[[], Any]) -> Any:
        result: list[Any] = []
        seconds = timed(lambda: result.append(verb()))
        figures.setdefault(name, []).append(1000 * seconds)
        return result[0]

    session_id = gated_session(stage, lambda name, verb: measure(f"new session: {name}", verb))
    old = _drawn(admin, first)
    measure("old session: message", lambda: stage.message(old))
    measure("old session: claim of a turn", lambda: stage.begin(old))
    stage.send(old, {"type": "user.interrupt"})
    for name, insert in _thousands(admin, session_id).items():
        measure(f"bulk: 1,000 {name}", partial(admin.execute, insert))
    measure("sweeps: due turns", lambda: queued.hints(Turn))
    measure("sweeps: due calls", lambda: queued.hints(ToolCall))


def _thousands(admin: Db, session_id: str) -> dict[str, str]:
    """Return the statements that insert 1,000 events and 1,000 acts of a session, which are copies of its first ones."""
    statements = {}
    for name, table, of_session in (("events", "event", "session_id"), ("acts", "audit", "chain")):
        columns = [str(row[0]) for row in admin.execute(_NAMES, (table,))]
        values = ", ".join("1000000 + n" if column == "seq" else f'row."{column}"' for column in columns)
        source = f"(SELECT * FROM {table} WHERE {of_session} = '{session_id}' AND seq = 1) row, generate_series(1, 1000) n"
        statements[name] = f"INSERT INTO {table} SELECT {values} FROM {source}"
    return statements


def _drawn(admin: Db, first: str) -> str:
    """Return the id of a copy that is drawn by lot; of the first session, if there are no copies."""
    count = number(admin, "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE relname = 'session'")
    for _ in range(100):
        drawn = f"{first[:-26]}{random.randint(1, max(count, 1)):010}{first[-16:]}"
        if admin.execute("SELECT FROM session WHERE id = %s", (drawn,)).fetchone() is not None:
            return drawn
    return first


def show(small: Side, large: Side, counts: tuple[int, int]) -> float:
    """Print the table. Returns the highest ratio."""
    print(f"{'ms, medians':32} {counts[0]:>10} {counts[1]:>10}  ratio   spin {spin_ms()} ms")
    highest = 0.0
    for name, values in small.figures.items():
        a, b = statistics.median(values), statistics.median(large.figures[name])
        ratio = (b + FLOOR_MS) / (a + FLOOR_MS)
        highest = max(highest, ratio)
        print(f"{name:32} {a:10.2f} {b:10.2f}  {ratio:5.2f}", flush=True)
    for side, count in zip((small, large), counts, strict=True):
        size = number(side.admin, "SELECT pg_database_size(current_database())")
        each = size / max(side.sessions, 1) / 1000
        print(f"{count} events in {side.sessions} sessions: {size / 1e9:.1f} GB, {each:.1f} kB per session")
    return highest


def options() -> argparse.Namespace:
    """Return the command's options. Exits with an error if the disk is too small."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.gettempdir())
    needed = int(chosen.events * BYTES_PER_EVENT * (1 + 1 / SHARE)) + WAL_BYTES
    if not chosen.drive and shutil.disk_usage(folder).free < needed:
        parser.error(f"{folder} needs {needed / 1e9:.0f} GB of free space")
    if chosen.folder:
        tempfile.tempdir = str(chosen.folder)
    return chosen


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    chosen = options()
    if chosen.drive:
        drive()
        return 0
    counts = (chosen.events // SHARE, chosen.events)
    with two_databases(__file__, counts, Side.fill) as sides:
        measure_in_turns(sides, chosen.rounds, BLOCK)
        return int(show(*sides, counts) > BOUND)


if __name__ == "__main__":
    sys.exit(main())
