"""Do insights take longer among ten million events than among one million? The page's own functions, on tables filled by SQL.

    make bench ARGS="insights [--events 10000000] [--rounds 15]"

A tenth as many approvals as events, of one workspace, over a year, with their daily sums and the sums of usage: 20 agents, 50
tools, 40 people and 3 models. The events themselves are not made, because insights read none. Measures each part of the page among
a tenth of the rows and then among all of them, over 30 days and over a year. Prints medians in ms and the ratios. Fails above a
ratio of 2.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
from benchmarks.copies import Db, copy
from benchmarks.house import servers
from benchmarks.meters import spin_ms, timed

BOUND = 2
SHARE = 10
FLOOR_MS = 2
"""Added to both figures of a ratio, because a short query takes less than the noise of its measurement."""
PLANNED = 6
"""Rounds that are not measured."""
_NAMES = {
    "hour": "lpad((ask / 7 %% 24)::text, 2, '0')",
    "tool": "'tool_' || ask %% 50",
    "agent": "'agent_' || ask %% 20",
    "channel": "(ARRAY['inbox', 'slack', 'link', 'api'])[1 + ask %% 4]",
    "person": "'user_' || ask %% 40",
}


class Tables:
    """A workspace of a scratch database with many approvals that ended, and some that wait."""

    def __init__(self, admin: Db) -> None:
        from people import member
        from rows.stage import Stage

        self.admin, self.count = admin, 0
        self.stage = Stage()
        self.anna = member(self.stage, "admin")
        self.session_id = self.stage.session(bash="always_ask")
        self.stage.propose(self.session_id)

    def fill(self, approvals: int) -> None:
        """Have so many approvals."""
        first, more = self.count + 1, approvals - self.count
        changed = {column: f"'{prefix}x' || n" for column, prefix in (("id", "appr_"), ("session_id", "sesn_"))}
        changed |= {
            "tool_call_id": "'sevt_x' || n",
            "created_at": "assent_now() - random() * interval '365 days'",
            "status": "CASE WHEN n % 1000 = 0 THEN 'pending' ELSE 'allowed' END",
            "decided_by": "'user:user_' || n % 40",
            "decided_at": "assent_now() - random() * interval '365 days'",
        }
        copy(self.admin, "approval", f"session_id = '{self.session_id}'", changed, more, first)
        for about, name in _NAMES.items():
            self.admin.execute(_SUMS.format(about=about, name=name), (self.stage.workspace_id, first, first + more - 1))
        self.admin.execute(_USAGE, (self.stage.workspace_id, first, first + more - 1))
        self.admin.execute("VACUUM ANALYZE")
        self.admin.execute("CHECKPOINT")
        self.count = approvals

    def measure(self, rounds: int) -> dict[str, float]:
        """Return the median milliseconds of each part of the page."""
        return {name: 1000 * _median(query, rounds) for name, query in self._queries().items()}

    def _queries(self) -> dict[str, Callable[[], float]]:
        from api.desk.insights import asking, cost, deciding
        from models.database import clock
        from models.database.transactions import transaction
        from models.operate.insights.report import Span, lines

        def reading(days: int, part: Callable[[Any, Any], object]) -> Callable[[], float]:
            def read() -> None:
                with transaction(self.stage.workspace_id) as db:
                    now = clock.now(db)
                    part(db, Span.of(now, now - timedelta(days=days - 1), None))

            return partial(timed, read)

        parts: dict[str, Callable[[Any, Any], object]] = {
            "asks": lambda db, span: asking.values(db, self.anna.principal, span),
            "people": lambda db, span: deciding.values(db, self.anna.principal, span),
            "cost": lambda db, span: cost.values(db, self.anna.principal, span),
            "API by tool": lambda db, span: lines(db, span, "tool"),
            "API by day": lambda db, span: lines(db, span, "day"),
        }
        return {f"{name}, {days} days": reading(days, part) for days in (30, 365) for name, part in parts.items()}


def _median(query: Callable[[], float], rounds: int) -> float:
    for _ in range(PLANNED):
        query()
    return statistics.median(query() for _ in range(rounds))


def show(small: dict[str, float], large: dict[str, float], counts: tuple[int, int]) -> float:
    """Print the table. Returns the highest ratio."""
    print(f"{'ms, medians':22} {counts[0]:>10} {counts[1]:>10}  ratio   spin {spin_ms()} ms")
    ratios = {name: (large[name] + FLOOR_MS) / (ms + FLOOR_MS) for name, ms in small.items()}
    for name, ratio in ratios.items():
        print(f"{name:22} {small[name]:10.1f} {large[name]:10.1f}  {ratio:5.2f}", flush=True)
    return max(ratios.values())


_SUMS = """
    INSERT INTO daily_asks (workspace_id, about, day, name, outcome, asks)
    SELECT %s, '{about}', (assent_now() AT TIME ZONE 'UTC')::date - (ask * 7919 %% 365)::int, {name},
        (ARRAY['allowed', 'allowed', 'allowed', 'denied'])[1 + ask / 3 %% 4], array_fill(count(*)::int, ARRAY[43])
    FROM generate_series(%s::bigint, %s::bigint) ask GROUP BY 3, 4, 5
    ON CONFLICT (workspace_id, about, day, name, outcome) DO NOTHING
"""
_USAGE = """
    INSERT INTO daily_usage
    SELECT %s, (assent_now() AT TIME ZONE 'UTC')::date - (ask * 7919 %% 365)::int, 'agent_' || ask %% 20, 'user_' || ask %% 40,
        'anthropic', 'model_' || ask %% 3, count(*), 0, 0, 1000, 100, 1000, 100, 0, 0, 0, 0.01, 0
    FROM generate_series(%s::bigint, %s::bigint) ask GROUP BY 2, 3, 4, 6
    ON CONFLICT (workspace_id, day, agent_id, person_id, provider, model) DO UPDATE
        SET requests = daily_usage.requests + excluded.requests
"""


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--rounds", type=int, default=15)
    chosen = options.parse_args()
    with servers() as on, psycopg.connect(on.postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET autovacuum = off")
        admin.execute("SELECT pg_reload_conf()")
        os.environ |= {"DATABASE_URL": on.postgres.url("app"), "DATABASE_SYSTEM_URL": on.postgres.url("system")}
        os.environ |= {"REDIS_URL": on.redis_url, "ANTHROPIC_API_KEY": "none"}
        tables = Tables(admin)
        counts = (chosen.events // SHARE, chosen.events)
        medians = []
        for count in counts:
            print(f"{count // 10} approvals made in {timed(partial(tables.fill, count // 10)):.0f} s", flush=True)
            medians.append(tables.measure(chosen.rounds))
        return int(show(medians[0], medians[1], counts) > BOUND)


if __name__ == "__main__":
    sys.exit(main())
