"""Does the inbox slow down with more rows? `make bench ARGS="inbox [--rounds 100] [--events 1000000]"`.

Two workspaces, one with 20 waiting approvals and one with 1,000, each of a session of its own. A signed-in admin loads each list
by turns, through gunicorn. Then two sessions, one with 200 events and one with a million: their newest events, and a page from
their middle. Prints the medians in ms, and the ratio of the large one to the small one. Fails above a ratio of 1.5.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from benchmarks.copies import copy
from benchmarks.idle_streams import say, stack, web

BOUND = 1.5
COUNTS = (20, 1000)


def queue(admin: str, stage: Any, count: int) -> None:
    """Give the stage's workspace `count` waiting approvals, copies of a real one."""
    from rows.stage import call

    session_id = stage.session()
    stage.message(session_id, "Tidy up.")
    stage.reply(session_id, call(command="git push origin main"))
    name = f"'sesn_{stage.workspace_id}_' || n"
    with psycopg.connect(admin, autocommit=True) as db:
        copy(db, "session", f"id = '{session_id}'", {"id": name}, count - 1)
        copy(db, "thread", f"session_id = '{session_id}'", {"session_id": name}, count - 1)
        of_message = f"session_id = '{session_id}' AND type = 'user.message'"
        copy(db, "event", of_message, {"id": f"'sevt_{stage.workspace_id}_' || n", "session_id": name}, count - 1)
        changes = {"id": f"'appr_{stage.workspace_id}_' || n", "session_id": name}
        copy(db, "approval", f"session_id = '{session_id}'", changes, count - 1)
        db.execute("VACUUM ANALYZE")


def seconds(client: httpx2.Client, path: str) -> float:
    """Load a page. Returns the seconds that it took."""
    began = time.monotonic()
    response = client.get(path)
    assert response.status_code == 200, response.text
    return time.monotonic() - began


def history(admin: str, stage: Any, count: int) -> str:
    """Create a session with `count` events, copies of a message. Returns its id."""
    session_id: str = stage.session()
    stage.message(session_id, "Tidy up.")
    with psycopg.connect(admin, autocommit=True) as db:
        message = f"session_id = '{session_id}' AND type = 'user.message'"
        [(last,)] = db.execute("SELECT last_seq FROM session WHERE id = %s", (session_id,)).fetchall()
        changes = {"id": f"'sevt_{session_id}_' || n", "seq": f"{last} + n", "processed_at": "now()", "turn_id": "NULL"}
        copy(db, "event", message, changes, count - last)
        db.execute("UPDATE session SET last_seq = %s WHERE id = %s", (count, session_id))
        db.execute("VACUUM ANALYZE event")
    return session_id


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--events", type=int, default=1_000_000)
    rounds, events = vars(options.parse_args()).values()
    from faults.own_redis import own_redis

    with tempfile.TemporaryDirectory() as place, stack(Path(place)) as urls, own_redis(Path(place)) as redis:
        os.environ |= {"DATABASE_URL": urls["app"], "DATABASE_SYSTEM_URL": urls["system"], "REDIS_URL": redis.url}
        import people
        from rows.stage import Stage

        stages = [Stage() for _ in COUNTS]
        for stage, count in zip(stages, COUNTS, strict=True):
            queue(urls["postgres"], stage, count)
        members = [people.member(stage, "admin") for stage in stages]
        sizes = (200, events)
        sessions = [history(urls["postgres"], stages[0], size) for size in sizes]
        pages = {
            "newest events": [f"/inbox/sessions/{session}" for session in sessions],
            "events in the middle": [
                f"/inbox/sessions/{session}?before={size // 2}" for session, size in zip(sessions, sizes, strict=True)
            ],
        }
        with web(100) as (port, _process):
            clients = [member.client(f"http://127.0.0.1:{port}") for member in members]
            ratios = [
                _ratio(path, COUNTS, [(client, path) for client in clients], rounds) for path in ("/inbox", "/inbox?show=all")
            ]
            ratios += [_ratio(name, sizes, [(clients[0], path) for path in paths], rounds) for name, paths in pages.items()]
    return int(max(ratios) > BOUND)


def _ratio(name: str, sizes: tuple[int, ...], requests: list[tuple[httpx2.Client, str]], rounds: int) -> float:
    """Load the small and the large page by turns, and print both medians. Returns their ratio."""
    for client, path in requests * 3:
        seconds(client, path)
    times: list[list[float]] = [[] for _ in requests]
    for _ in range(rounds):
        for (client, path), own in zip(requests, times, strict=True):
            own.append(seconds(client, path))
    small, large = (1000 * statistics.median(own) for own in times)
    say(f"{name:21} {sizes[0]}: {small:.1f} ms, {sizes[1]}: {large:.1f} ms, ratio {large / small:.2f} (bound {BOUND})")
    return large / small


if __name__ == "__main__":
    sys.exit(main())
