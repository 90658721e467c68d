"""Does a turn cost more in a longer conversation? With all of Assent running: HTTP, Celery, the SDK, the stand-in model.

    make bench ARGS="growth [10 100 400] [--turns 15]"

For each size: sessions with that many messages of 1 kB, copies of a real turn's rows, get one more message of 1 kB, one session at
a time, the sizes by turns. Each turn is measured in two parts, and the model is silent between them:

    read    the POST, the claim, the history read from Postgres, sent through the SDK
    write   the reply of 1 kB streamed back and kept

For each part: bytes of WAL; CPU ms of all processes but the model's; wall ms to the claim, and from the claim to the end without
the model's silence. Medians over the turns, and in brackets the ratio to the first size. The last column is the least that reading
the history costs: one SELECT by psycopg, parsed and written as JSON again, in CPU ms of this process and of Postgres. WAL and the
write part should be flat within 1.5; the read part grows by the reading, and by the SDK's work on the messages.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass, fields

import httpx2
import psycopg
from benchmarks.copies import Db, copy, number
from benchmarks.driver import Driver
from benchmarks.house import House, house, servers
from benchmarks.meters import exact_cpu, spin_ms

from models.session.thread.row import own_id

SILENCE_SECONDS = 0.6
"""How long the model is silent before its reply. In the second half nothing happens, which separates the two parts."""
WORDS = ("river ", "stone ", "seven ", "light ", "under ", "maybe ", "north ", "paper ", "quiet ", "other ")
PROMPT = f"delay {SILENCE_SECONDS:g}s\nsay "


@dataclass(frozen=True)
class Cost:
    """The cost of one turn."""

    wal_read: float
    wal_write: float
    cpu_read: float
    cpu_write: float
    wall_to_claim: float
    wall_from_claim: float

    @property
    def wal(self) -> float:
        """Return the bytes of both parts."""
        return self.wal_read + self.wal_write

    @property
    def cpu(self) -> float:
        """Return the milliseconds of both parts."""
        return self.cpu_read + self.cpu_write

    @property
    def wall(self) -> float:
        """Return the milliseconds of both parts."""
        return self.wall_to_claim + self.wall_from_claim


COLUMNS = [*(field.name for field in fields(Cost)), "wal", "cpu", "wall"]


def prose(variant: int) -> str:
    """Return a message's thousand characters, less the prompt, different for each number."""
    return "".join(WORDS[(variant * 7 + n * n * 3 + n // 5) % 10] for n in range(170))[: 1000 - len(PROMPT)]


class Sessions:
    """Sessions with conversations, copied from one real session with one real turn."""

    def __init__(self, db: Db, driver: Driver) -> None:
        self.db = db
        self.first = driver.start()
        while not any(mark[:2] == ("D", self.first) for mark in driver.read()):
            pass
        self.events = self._count("event")
        assert self._count("turn") == 1

    def make(self, name: str, messages: int) -> str:
        """Create a session with that many messages, half of them the model's. Returns its id."""
        turns = messages // 2
        here = {"session_id": f"'{name}'", "thread_id": f"'{own_id(name)}'"}
        copy(self.db, "session", f"id = '{self.first}'", {"id": f"'{name}'", "last_seq": str(turns * self.events)})
        last = {"turn_number": str(turns), "turn_id": f"'turn_{name}_{turns}'"}
        copy(self.db, "thread", f"session_id = '{self.first}'", {"session_id": f"'{name}'", "id": here["thread_id"]} | last)
        turn_id = f"'turn_{name}_' || n"
        copy(self.db, "turn", f"session_id = '{self.first}'", {"id": turn_id, "number": "n"} | here, turns)
        of_first = f"turn_id IN (SELECT id FROM turn WHERE session_id = '{self.first}')"
        copy(self.db, "reply", of_first, {"turn_id": turn_id}, turns)
        each = {"id": "'sevt_' || md5(row.id || n)", "seq": f"row.seq + (n - 1) * {self.events}"}
        each["turn_id"] = f"CASE WHEN row.turn_id IS NOT NULL THEN {turn_id} END"
        copy(self.db, "event", f"session_id = '{self.first}'", each | here, turns)
        return name

    def _count(self, table: str) -> int:
        return number(self.db, f"SELECT count(*) FROM {table} WHERE session_id = %s", (self.first,))


def reading(at: House, db: Db, session_id: str) -> float:
    """Return the CPU milliseconds of reading a history and writing it as JSON."""
    postgres = at.pids["postgres"]
    before, mine = exact_cpu(postgres), time.thread_time()
    messages = """
        SELECT reply.content, event.body FROM turn JOIN reply ON reply.turn_id = turn.id
        JOIN event ON event.turn_id = turn.id AND event.session_id = turn.session_id
        WHERE turn.session_id = %s ORDER BY turn.number
    """
    rows = db.execute(messages, (session_id,)).fetchall()
    json.dumps(rows)
    mine = time.thread_time() - mine
    return 1000 * (exact_cpu(postgres) - before + mine)


def turn(at: House, driver: Driver, db: Db, session_id: str, prompt: str) -> Cost:
    """Send one more message, and wait for the end of its turn. Returns the cost."""
    start = _read(at, db)
    began = time.monotonic_ns()
    driver.say(session_id, prompt)
    claimed = _wait(driver, session_id, "C")
    time.sleep(max(0.0, SILENCE_SECONDS / 2 - (time.monotonic_ns() - claimed) / 1e9))
    silent = _read(at, db)
    done = _wait(driver, session_id, "D")
    time.sleep(0.1)  # what a task does after its last commit
    end = _read(at, db)
    return Cost(
        silent[0] - start[0],
        end[0] - silent[0],
        1000 * (silent[1] - start[1]),
        1000 * (end[1] - silent[1]),
        (claimed - began) / 1e6,
        (done - claimed) / 1e6 - 1000 * SILENCE_SECONDS,
    )


def _read(at: House, db: Db) -> tuple[int, float]:
    """Return the position in the WAL, and the CPU seconds of all processes but the model's."""
    position = number(db, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
    return position, sum(exact_cpu(pid) for name, pid in at.pids.items() if name != "standin")


def _wait(driver: Driver, session_id: str, kind: str) -> int:
    while True:
        for mark in driver.read():
            if mark[:2] == (kind, session_id):
                return mark[3]


def show(size: int, costs: list[Cost], alone: list[float], base: dict[str, float]) -> dict[str, float]:
    """Print a line of the table. Returns the medians."""
    medians = {name: statistics.median(getattr(cost, name) for cost in costs) for name in COLUMNS}
    cells = [f"{medians[name]:8.0f} ({medians[name] / base.get(name, medians[name]):4.2f})" for name in COLUMNS]
    print(f"{size:8}  " + "  ".join(cells) + f"  {statistics.median(alone):10.1f}", flush=True)
    return medians


def main() -> None:
    """Measure all sizes, by turns, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sizes", nargs="*", type=int, default=[10, 100, 400])
    options.add_argument("--turns", type=int, default=15, help="of each size")
    chosen = options.parse_args()
    with servers() as on, house(on) as at, psycopg.connect(at.admin_url, autocommit=True) as db:
        driver = Driver(at)
        driver.session["initial_events"][0]["content"][0]["text"] = PROMPT + prose(0)
        sessions = Sessions(db, driver)
        held = {n: [sessions.make(f"sesn_bench{n}x{k}", n) for k in range(chosen.turns + 2)] for n in chosen.sizes}
        db.execute("VACUUM ANALYZE")
        costs: dict[int, list[Cost]] = {n: [] for n in chosen.sizes}
        alone: dict[int, list[float]] = {n: [] for n in chosen.sizes}
        for k in range(chosen.turns + 2):
            for n in chosen.sizes:
                alone[n].append(reading(at, db, held[n][k]))
                costs[n].append(turn(at, driver, db, held[n][k], PROMPT + prose(k)))
                sent = httpx2.get(f"{on.model_url}/standin/requests?last=1", trust_env=False).json()
                assert len(sent["data"][0]["messages"]) == n + 1, "the model was not sent the whole conversation"
        print(f"medians of {chosen.turns} turns, spin {spin_ms()} ms; in brackets the ratio to {chosen.sizes[0]} messages")
        print("messages  " + "  ".join(f"{name:>15}" for name in COLUMNS) + "  reading cpu")
        base: dict[str, float] = {}
        for n in chosen.sizes:
            medians = show(n, costs[n][2:], alone[n][2:], base)  # the first ones warm everything up
            base = base or medians
        driver.close()


if __name__ == "__main__":
    main()
