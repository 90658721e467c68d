"""Do the frequent queries slow down with a hundred times as many rows? The real functions, on tables filled by SQL.

    make bench ARGS="queries [--rows 1000000] [--rounds 25]"

Measures each query twice, first among a hundredth of the rows and then among all of them:

    grants             that may allow a proposed call; the rows: grants of the agent's other sessions, and as many that expired
    claim              of a turn under a monthly limit; the rows: sums of the month, one by day, agent, person and model
    session            whether an approver may read it; the rows: approvals of other sessions
    count, anybody's   approvals that wait for a person, on each page of the inbox; the rows: approvals that anybody may decide
    count, others'     the same; the rows: approvals that only somebody else may decide
    list, anybody's    the first page of the same queue
    list, others'      likewise
    sessions           that wait for a client; the rows: newer sessions that wait for a person
    at limits          the sweep of questions at spend limits, every minute; the rows: other approvals that wait
    metrics            the metrics of all workspaces; the rows: approvals that wait

Prints medians in ms, after the rounds in which Postgres chooses a plan, and the ratios. A query that takes 5 s is ended. Fails
above a ratio of 2. A million rows take 5 GB of the system's temporary folder.
"""

import argparse
import contextlib
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
from benchmarks.copies import Db
from benchmarks.house import servers
from benchmarks.meters import spin_ms, timed

BOUND = 2
SHARE = 100
"""The small tables have this part of the rows."""
FLOOR_MS = 0.2
"""Added to both figures of a ratio, because a query in memory takes less than the noise of its measurement."""
PLANNED = 8
"""Rounds that are not measured."""

_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = ANY(%s) AND indexname NOT LIKE '%%_pkey'
"""


class Tables:
    """Three workspaces of a scratch database: one with grants and sums, two whose approvals wait for anybody or for others."""

    def __init__(self, admin: Db) -> None:
        from people import member
        from rows.spending import MODEL, QUOTE, limit
        from rows.stage import Stage

        self.admin, self.count = admin, 0
        self.busy, self.anybody, self.others = Stage(), Stage(), Stage()
        self.busy.quote = QUOTE
        limit(self.busy, str(10**9))
        self.granted = self.busy.session(model=MODEL, bash="always_ask")
        self.busy.confirm(self.granted, self.busy.propose(self.granted).id, scope="session")
        self.busy.send(self.granted, {"type": "user.interrupt"})
        self.anna, self.ben = member(self.anybody, "approver"), member(self.others, "approver")
        approval = {"approvers": [f"user:{member(self.others, 'approver').person_id}"]}
        self.parked = [self.anybody.session(), self.others.session(bash="always_ask", approval=approval)]
        for stage, session in zip((self.anybody, self.others), self.parked, strict=True):
            stage.propose(session)

    def fill(self, count: int) -> None:
        """Have `count` rows of each kind."""
        from rows import crowd

        first, more = self.count + 1, count - self.count
        with self._without_indexes("approval", "approval_grant", "daily_usage", "session"):
            crowd.grants_of_others(self.admin, self.granted, more, first)
            crowd.sums(self.admin, self.busy.workspace_id, more, first)
            for session in self.parked:
                crowd.approvals_of_others(self.admin, session, more, first)
            crowd.sessions_of_others(self.admin, self.parked[0], more, first)
        self.admin.execute("VACUUM ANALYZE")
        self.admin.execute("CHECKPOINT")  # else Postgres writes the rows to the disk while the queries are measured
        self.count = count

    @contextlib.contextmanager
    def _without_indexes(self, *tables: str) -> Iterator[None]:
        """Drop the tables' indexes meanwhile, but not those of primary keys: the rows are then inserted several times as fast."""
        indexes = self.admin.execute(_INDEXES, (list(tables),)).fetchall()
        for name, _ in indexes:
            self.admin.execute(f"DROP INDEX {name}")
        yield
        for _, definition in indexes:
            self.admin.execute(str(definition))

    def measure(self, rounds: int) -> dict[str, float]:
        """Return the median milliseconds of each query."""
        return {name: 1000 * _median(query, rounds) for name, query in self._queries().items()}

    def _queries(self) -> dict[str, Callable[[], float]]:
        """Return the queries by name. Each returns the seconds that it took."""
        from doors.served import key

        from api.door.paging import page
        from api.v1.approvals import visible, waiting_list
        from api.v1.sessions.requests import SessionList
        from api.v1.sessions.routes import NEWEST, selected
        from models.database.transactions import transaction
        from models.operate import due
        from models.operate.metrics import reading as metrics
        from models.session.approval.grant import Grant

        def reading(stage: Any, verb: Callable[[Any], object]) -> Callable[[], float]:
            def read() -> None:
                with transaction(stage.workspace_id) as db:
                    verb(db)

            return partial(timed, read)

        def first_page(db: Any, person: Any) -> object:
            return page(db, waiting_list.waiting_for(db, person.person_id), waiting_list.OLDEST_DEADLINE, 20, None)

        return {
            "grants": reading(self.busy, lambda db: Grant.to_use(db, self.busy.thread(self.granted), {"bash"})),
            "claim": self._claim,
            "session": reading(self.others, lambda db: _refused(visible.check_session, db, self.ben.principal, self.parked[1])),
            "count, anybody's": reading(self.anybody, lambda db: waiting_list.waiting_for(db, self.anna.person_id).count(db)),
            "count, others'": reading(self.others, lambda db: waiting_list.waiting_for(db, self.ben.person_id).count(db)),
            "list, anybody's": reading(self.anybody, lambda db: first_page(db, self.anna)),
            "list, others'": reading(self.others, lambda db: first_page(db, self.ben)),
            "sessions": reading(self.anybody, lambda db: page(db, selected(SessionList(waiting="client")), NEWEST, 20, None)),
            "at limits": partial(timed, due.workspaces_at_limits),
            "metrics": partial(timed, partial(metrics.read, key(self.anybody, "metrics"))),
        }

    def _claim(self) -> float:
        """Claim a turn, and end its run. Returns the seconds of the claim."""
        self.busy.message(self.granted)
        seconds = timed(partial(self.busy.begin, self.granted))
        self.busy.send(self.granted, {"type": "user.interrupt"})
        return seconds


def _refused(check: Callable[..., None], *args: Any) -> None:
    from models.errors import NotFound

    try:
        check(*args)
    except NotFound:
        return
    raise AssertionError("the session is not the person's own")


def _median(query: Callable[[], float], rounds: int) -> float:
    """Return the median seconds of the query, or the time-out if it ends the query."""
    try:
        for _ in range(PLANNED):
            query()
        return statistics.median(query() for _ in range(rounds))
    except psycopg.errors.QueryCanceled:
        return 5


def show(small: dict[str, float], large: dict[str, float], counts: tuple[int, int]) -> float:
    """Print the table. Returns the highest ratio."""
    print(f"{'ms, medians':18} {counts[0]:>10} {counts[1]:>10}  ratio   spin {spin_ms()} ms")
    ratios = {name: (large[name] + FLOOR_MS) / (ms + FLOOR_MS) for name, ms in small.items()}
    for name, ratio in ratios.items():
        print(f"{name:18} {small[name]:10.2f} {large[name]:10.2f}  {ratio:5.2f}", flush=True)
    return max(ratios.values())


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=25)
    chosen = options.parse_args()
    with servers() as on, psycopg.connect(on.postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET autovacuum = off")  # `fill` does it between the measurements
        admin.execute("SELECT pg_reload_conf()")
        os.environ |= {"DATABASE_URL": on.postgres.url("app"), "DATABASE_SYSTEM_URL": on.postgres.url("system")}
        os.environ |= {"REDIS_URL": on.redis_url, "ANTHROPIC_API_KEY": "none"}
        tables = Tables(admin)
        counts = (chosen.rows // SHARE, chosen.rows)
        medians = []
        for count in counts:
            print(f"{count} rows of each kind made in {timed(partial(tables.fill, count)):.0f} s", flush=True)
            medians.append(tables.measure(chosen.rounds))
        return int(show(medians[0], medians[1], counts) > BOUND)


if __name__ == "__main__":
    sys.exit(main())
