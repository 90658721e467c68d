"""Does a turn cost more in a session of 10,000 turns than in one of 100? Tasks, Postgres and the stand-in model, in one process.

    make bench ARGS="long_sessions [100 1000 10000] [--turns 40]"

For each size: a session with that many turns, copies of the rows that Assent wrote for a real session, with as many folds per turn.
Then each session gets `--turns` more, the sizes by turns. A turn is a message of 1 kB, the requests of its tasks, summaries
included, and a reply. The model's window is small, so that a summary comes every few turns.

For each turn: rows that Postgres read from its tables, kB sent to the model, CPU ms of this process and of Postgres, and wall ms.
Means over the turns, since a summary makes one turn costlier than the others, and in brackets the ratio to the first size.
All ratios should be within 1.5.
"""

import argparse
import json
import os
import statistics
import time
from dataclasses import dataclass, fields
from pathlib import Path

import httpx2
import psutil
import psycopg
from benchmarks.copies import Db, copy, number
from benchmarks.house import Servers, servers
from benchmarks.meters import exact_cpu, own_cpu, spin_ms
from rows.stage import Stage

from models.session.thread.row import own_id
from models.session.turn.row import Turn
from models.settings import settings
from workers import turn as task

WINDOW = 12_000
"""Tokens. The tools of the agent take 2,000 of them."""
PROSE = "the sea was far but its low hum " * 32
ROWS = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables"


@dataclass(frozen=True)
class Cost:
    """The cost of one turn."""

    rows: float
    kilobytes: float
    cpu: float
    wall: float


class Sessions:
    """The sessions of one workspace, and a meter of their turns."""

    def __init__(self, on: Servers, db: Db) -> None:
        self.stage, self.db, self.model_url = Stage(), db, on.model_url
        self.postgres = psutil.Process(db.info.backend_pid).ppid()

    def turn(self, session_id: str) -> Turn:
        """Send one more message and run its turn as tasks do. Returns the turn."""
        self.stage.message(session_id, f"{PROSE}\nsay {PROSE}")
        while (turn := self._current(session_id)).status == "queued":
            task.attempt(turn.id, session_id, self.stage.workspace_id)
        assert turn.status == "done", turn.status
        return turn

    def measured(self, session_id: str) -> Cost:
        """Run one more turn. Returns its cost."""
        httpx2.delete(f"{self.model_url}/standin/requests", trust_env=False)
        rows, cpu, began = self._rows(), exact_cpu(self.postgres) + own_cpu(), time.monotonic()
        self.turn(session_id)
        wall, cpu = time.monotonic() - began, exact_cpu(self.postgres) + own_cpu() - cpu
        sent = httpx2.get(f"{self.model_url}/standin/requests", trust_env=False).json()["data"]
        return Cost(self._rows() - rows, sum(len(json.dumps(body)) for body in sent) / 1000, 1000 * cpu, 1000 * wall)

    def make(self, first: str, size: int) -> str:
        """Create a session with `size` turns, copies of the turns of a real one. Returns its id."""
        real = number(self.db, "SELECT count(*) FROM turn WHERE session_id = %s", (first,))
        events = number(self.db, "SELECT max(seq) FROM event WHERE session_id = %s", (first,))
        copies, name, mark = size // real, f"sesn_bench{size}", f"'_{size}_' || n"
        here = {"session_id": f"'{name}'"}
        turns, seqs = f"{copies * real}", f"{copies * events}"
        copy(self.db, "session", f"id = '{first}'", {"id": f"'{name}'", "last_seq": seqs})
        here["thread_id"] = f"'{own_id(name)}'"
        last = {"turn_number": turns, "turn_id": f"(row.turn_id || '_{size}_{copies}')"}
        copy(self.db, "thread", f"session_id = '{first}'", {"session_id": f"'{name}'", "id": here["thread_id"], **last})
        of_turn = {"id": f"row.id || {mark}", "number": f"row.number + (n - 1) * {real}", **here}
        copy(self.db, "turn", f"session_id = '{first}'", of_turn, copies)
        of_first = f"turn_id IN (SELECT id FROM turn WHERE session_id = '{first}')"
        copy(self.db, "reply", of_first, {"turn_id": f"row.turn_id || {mark}"}, copies)
        of_event = {
            "id": "'sevt_' || md5(row.id || n)",
            "seq": f"row.seq + (n - 1) * {events}",
            "turn_id": "row.turn_id || '_' || n",
        }
        copy(self.db, "event", f"session_id = '{first}'", of_event | here, copies)
        of_fold = {"through": f"row.through + (n - 1) * {real}", "seq": f"row.seq + (n - 1) * {events}", **here}
        copy(self.db, "fold", f"session_id = '{first}'", of_fold, copies)
        return name

    def _current(self, session_id: str) -> Turn:
        return self.stage.get(Turn, self.stage.thread(session_id).turn_id or "")

    def _rows(self) -> int:
        time.sleep(0.02)
        self.db.execute("SELECT pg_stat_clear_snapshot()")
        return number(self.db, ROWS)


def configure(on: Servers) -> None:
    """Make this process use the servers, and a model with a small window."""
    entry = {"name": "anthropic", "kind": "anthropic", "base_url": on.model_url, "api_key_env": "BENCH_KEY", "models": ["*"]}
    file = Path(on.folder.path) / "providers.json"
    file.write_text(json.dumps({"providers": [entry | {"windows": {"*": WINDOW}}]}))
    os.environ |= {"DATABASE_URL": on.postgres.url("app"), "REDIS_URL": on.redis_url, "ASSENT_ENVIRONMENT": "development"}
    os.environ |= {"ASSENT_PROVIDERS": str(file), "BENCH_KEY": "stand-in"}
    settings.cache_clear()


def show(size: int, costs: list[Cost], base: dict[str, float]) -> dict[str, float]:
    """Print a line of the table. Returns the means."""
    means = {field.name: statistics.fmean(getattr(cost, field.name) for cost in costs) for field in fields(Cost)}
    cells = [f"{value:10.1f} ({value / base.get(name, value):4.2f})" for name, value in means.items()]
    print(f"{size:8}  " + "  ".join(cells), flush=True)
    return means


def main() -> None:
    """Measure all sizes, by turns, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sizes", nargs="*", type=int, default=[100, 1000, 10_000])
    options.add_argument("--turns", type=int, default=40, help="of each size")
    chosen = options.parse_args()
    with servers() as on, psycopg.connect(on.postgres.url("postgres"), autocommit=True) as db:
        configure(on)
        sessions = Sessions(on, db)
        first = sessions.stage.session()
        folds = sum(sessions.turn(first).folds for _ in range(50))
        assert folds, "the window is too large for these messages"
        names = {size: sessions.make(first, size) for size in chosen.sizes}
        db.execute("VACUUM ANALYZE")
        costs: dict[int, list[Cost]] = {size: [] for size in chosen.sizes}
        for _ in range(chosen.turns):
            for size in chosen.sizes:
                costs[size].append(sessions.measured(names[size]))
        print(f"means of {chosen.turns} turns, {folds} folds in 50 turns, spin {spin_ms()} ms; in brackets the ratio to the first")
        print("   turns  " + "  ".join(f"{field.name:>17}" for field in fields(Cost)))
        base: dict[str, float] = {}
        for size in chosen.sizes:
            means = show(size, costs[size], base)
            base = base or means


if __name__ == "__main__":
    main()
