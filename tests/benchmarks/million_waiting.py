"""Do a million waiting approvals cost anything before they are due? Every sweep, and every page, of one workspace.

    make bench ARGS="million_waiting [--rows 1000000] [--rounds 20] [--folder DIR] [--only system]"

Two databases of one Postgres have 1,000 and a million sessions that have waited for a person for more than a month: copies of one
that Assent's verbs wrote, in every table. All sweeps of the schedule run in both, and an admin loads each page of the desk and the
lists of the API, in turns; but for the seal and the pages of the audit, whose cost follows acts (`audit`). Prints medians in ms and
the ratio, the highest first. Fails above a ratio of 1.2. A million sessions take 10 GB below `--folder` and some minutes. `--only`
measures the sweeps and pages alone whose names contain these letters. `sweep` measures the same sweeps while approvals are due.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.meters import spin_ms, timed
from benchmarks.millions import COLUMNS, Side, measure_in_turns, two_databases

BOUND = 1.2
FEW = 1000
BLOCK = 5
ONLY = "BENCH_ONLY"
"""The environment's variable with the letters of `--only`, for the processes that drive."""
FLOOR_MS = 2
"""Added to both figures of a ratio: a page takes milliseconds to print, and a sweep runs every few seconds at most."""
LISTS = ("/v1/approvals", "/v1/sessions", "/v1/sessions?waiting=approval")
_NO_PAGES = ("/stream", "/worker.js", "/manifest.webmanifest", "/export", "/next", "/together", "/audit", "/audit/verify")
_IN_A_YEAR = "UPDATE approval SET expires_at = clock_timestamp() + interval '1 year', remind_at = NULL"
_OLDER = "UPDATE {table} SET {column} = {column} - interval '40 days'"
"""So pages about the last days show none of them, and what they cost is the cost of what waits."""


class Waiting:
    """A workspace with a session that waits, whose sweeps and pages are measured."""

    def __init__(self, letters: str) -> None:
        import people
        from doors.served import key
        from rows.stage import Stage, call

        from api import create_app
        from workers.celery import app as celery

        celery.loader.import_default_modules()
        stage = Stage()
        session = stage.session()
        stage.message(session, "Tidy up.")
        stage.reply(session, call(command="git push origin main"))
        self.session_id = session
        admin = people.member(stage, "admin")
        web = create_app()
        self.client = web.test_client()
        self.client.set_cookie("assent-80", admin.secret)
        pages = [rule.rule for rule in web.url_map.iter_rules() if rule.rule.startswith("/inbox") and not rule.arguments]
        pages = sorted(page for page in set(pages) if not page.endswith(_NO_PAGES) and self.client.get(page).status_code == 200)
        headers = {"x-api-key": key(stage, "sessions", "approvals", "read")}
        self.work: dict[str, Callable[[], Any]] = {page: partial(self.client.get, page) for page in pages}
        assert all(self.client.get(path, headers=headers).status_code == 200 for path in LISTS)
        self.work |= {path: partial(self.client.get, path, headers=headers) for path in LISTS}
        sweeps = sorted(
            {line["task"] for line in celery.conf.beat_schedule.values() if line["task"].startswith("sweep.")}
            - {"sweep.seal_audit"}
        )
        self.work |= {name: celery.tasks[name] for name in sweeps}
        self.work = {name: work for name, work in self.work.items() if letters in name}

    def measure(self) -> dict[str, float]:
        """Return the milliseconds of each."""
        return {name: 1000 * timed(work) for name, work in self.work.items()}


def drive(letters: str) -> None:
    """Do what the lines of the input say, as `benchmarks.millions` asks."""
    waiting = Waiting(letters)
    for line in sys.stdin:
        what, count = json.loads(line)
        if what == "first":
            print(json.dumps({"session_id": waiting.session_id}), flush=True)
            continue
        figures: dict[str, list[float]] = {}
        for _ in range(count):
            for name, ms in waiting.measure().items():
                figures.setdefault(name, []).append(ms)
        print(json.dumps(figures), flush=True)


def age(side: Side) -> None:
    """Have the first session wait for 40 days already, and end in a year."""
    columns = side.admin.execute(COLUMNS).fetchall()
    of_sessions = {"session"} | {table for table, column, _ in columns if column == "session_id"}
    side.admin.execute("SET session_replication_role = replica")
    for table, column, kind in columns:
        if table in of_sessions and str(kind).startswith("timestamp"):
            side.admin.execute(_OLDER.format(table=table, column=column))
    side.admin.execute(_IN_A_YEAR)


def fill(side: Side, count: int) -> None:
    """Copy the first session until so many wait."""
    age(side)
    side.fill(count * side.events_each)


def show(small: Side, large: Side, counts: tuple[int, int]) -> float:
    """Print the table, the highest ratio first. Returns this ratio."""
    print(f"{'ms, medians':36} {counts[0]:>10} {counts[1]:>10}  ratio   spin {spin_ms()} ms")
    medians = {name: (statistics.median(values), statistics.median(large.figures[name])) for name, values in small.figures.items()}
    ratios = {name: (b + FLOOR_MS) / (a + FLOOR_MS) for name, (a, b) in medians.items()}
    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
        print("{:36} {:10.2f} {:10.2f}  {:5.2f}".format(name, *medians[name], ratio), flush=True)
    return max(ratios.values())


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--only", default="")
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.drive:
        drive(os.environ.get(ONLY, ""))
        return 0
    tempfile.tempdir = str(chosen.folder)
    os.environ[ONLY] = chosen.only
    os.environ["ASSENT_REQUESTS_PER_SECOND"] = "0"
    counts = (FEW, chosen.rows)
    with two_databases(__file__, counts, fill) as sides:
        measure_in_turns(sides, chosen.rounds, BLOCK)
        return int(show(*sides, counts) > BOUND)


if __name__ == "__main__":
    sys.exit(main())
