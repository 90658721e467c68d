"""Does the inbox's list slow down with the queue? `python tests/benchmarks/inbox.py [--rounds 100]`.

Two workspaces, one with 20 waiting approvals and one with 1,000, each of a session of its own. A signed-in admin loads each list
by turns, through gunicorn. Prints the medians in ms, for the admin's own queue and for all that wait, and the ratio of the long
list to the short one. Fails above a ratio of 1.5.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psycopg

HOUSE = Path(__file__).parents[2]
sys.path[:0] = [str(HOUSE), str(HOUSE / "tests")]

from benchmarks.copies import copy  # noqa: E402
from benchmarks.idle_streams import say, stack, web  # noqa: E402

BOUND = 1.5
COUNTS = (20, 1000)


def queue(admin: str, stage: Any, count: int) -> None:
    """Give the stage's workspace so many waiting approvals, copies of a real one."""
    from rows.stage import call

    session_id = stage.session()
    stage.message(session_id, "Tidy up.")
    stage.reply(session_id, call(command="git push origin main"))
    name = f"'sesn_{stage.workspace_id}_' || n"
    with psycopg.connect(admin, autocommit=True) as db:
        copy(db, "session", f"id = '{session_id}'", {"id": name}, count - 1)
        changes = {"id": f"'appr_{stage.workspace_id}_' || n", "session_id": name}
        copy(db, "approval", f"session_id = '{session_id}'", changes, count - 1)
        db.execute("VACUUM ANALYZE")


def seconds(client: httpx.Client, path: str) -> float:
    """Return how long a page takes."""
    began = time.monotonic()
    response = client.get(path)
    assert response.status_code == 200, response.text
    return time.monotonic() - began


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=100)
    rounds = options.parse_args().rounds
    from faults.own_redis import own_redis

    with tempfile.TemporaryDirectory() as place, stack(Path(place)) as urls, own_redis(Path(place)) as redis:
        os.environ |= {"DATABASE_URL": urls["app"], "DATABASE_SYSTEM_URL": urls["system"], "REDIS_URL": redis.url}
        import people
        from rows.stage import Stage

        stages = [Stage() for _ in COUNTS]
        for stage, count in zip(stages, COUNTS, strict=True):
            queue(urls["postgres"], stage, count)
        members = [people.member(stage, "admin") for stage in stages]
        with web(100) as (port, _process):
            clients = [member.client(f"http://127.0.0.1:{port}") for member in members]
            highest = max(_ratio(clients, path, rounds) for path in ("/inbox", "/inbox?show=all"))
    return int(highest > BOUND)


def _ratio(clients: list[httpx.Client], path: str, rounds: int) -> float:
    for client in clients * 3:
        seconds(client, path)
    times: list[list[float]] = [[] for _ in clients]
    for _ in range(rounds):
        for client, own in zip(clients, times, strict=True):
            own.append(seconds(client, path))
    short, long = (1000 * statistics.median(own) for own in times)
    say(f"{path:16} {COUNTS[0]} wait: {short:.1f} ms, {COUNTS[1]} wait: {long:.1f} ms, ratio {long / short:.2f} (bound {BOUND})")
    return long / short


if __name__ == "__main__":
    sys.exit(main())
