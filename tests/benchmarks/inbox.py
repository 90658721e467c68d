"""Do the pages slow down with more rows?

`make bench ARGS="inbox [--rounds 100] [--events 1000000] [--sessions 100000] [--only WORDS]"`. With `--only`, the rows of the
report whose name has these words.

Workspaces with 20, 1,000, 5,000 and `--sessions` waiting approvals, each of a session of its own with its acts. A signed-in admin
loads each list and the audit by turns, through gunicorn: among 20 and 1,000 sessions, and among 1,000 and `--sessions`; and what
searches the newest rows alone, among 5,000, which are more than it searches, and `--sessions`. Then a session with 200 events and
one with a million, their newest events and a page from their middle; and one with 30 turns and one with 3,000, whose times are
drawn. Prints the medians in ms, and the ratio of the large one to the small one. Fails above a ratio of 1.5.
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
FEW_SEARCHED = 5_000
"""Sessions that have more rows than a search of the audit looks at."""
TURNS = (30, 3_000)
LISTS = ("/inbox", "/inbox?show=all", "/inbox?show=unknown", "/inbox?show=decided", "/inbox/sessions?tab=attention")
PAGES = (*LISTS, "/inbox/audit", "/inbox/audit?about=decisions", "/inbox/audit?about=settings", "/inbox/audit?about=all")
SEARCHES = (
    *("/inbox/search", "/inbox/search?q=git", "/inbox/search?q=never", "/inbox/search?q=halt"),
    *("/inbox/audit?q=push", "/inbox/audit?q=never", "/inbox/audit?who=Assent&q=never", "/inbox/audit?about=all&q=never"),
    "/inbox/audit/verify",
)


def queue(admin: str, stage: Any, count: int) -> None:
    """Give the stage's workspace `count` waiting approvals, copies of a real one."""
    from rows.stage import call

    session_id = stage.session()
    stage.message(session_id, "Tidy up.")
    stage.reply(session_id, call(command="git push origin main"))
    name, later = f"'sesn_{stage.workspace_id}_' || n", "+ n * interval '1 millisecond'"
    created = {"created_at": f"row.created_at {later}"}
    times = created | {"expires_at": f"row.expires_at {later}"}
    with psycopg.connect(admin, autocommit=True) as db:
        copy(db, "session", f"id = '{session_id}'", {"id": name} | created, count - 1)
        copy(db, "thread", f"session_id = '{session_id}'", {"session_id": name}, count - 1)
        of_message = f"session_id = '{session_id}' AND type = 'user.message'"
        copy(db, "event", of_message, {"id": f"'sevt_{stage.workspace_id}_' || n", "session_id": name}, count - 1)
        changes = {"id": f"'appr_{stage.workspace_id}_' || n", "session_id": name} | times
        copy(db, "approval", f"session_id = '{session_id}'", changes, count - 1)
        ended = {"status": "'denied'", "decided_at": "now() - n * interval '1 second'", "decided_by": "'user:none'"}
        decided = {"id": f"'appr_{stage.workspace_id}_over_' || n", "decision": """'{"result": "deny"}'"""} | ended | times
        copy(db, "approval", f"id = (SELECT min(id) FROM approval WHERE session_id = '{session_id}')", decided, count - 1)
        unknown = {"id": f"'appr_{stage.workspace_id}_unknown_' || n", "session_id": name, "kind": "'unknown_outcome'"} | times
        copy(db, "approval", f"id = (SELECT min(id) FROM approval WHERE session_id = '{session_id}')", unknown, count - 1)
        refused = {"id": f"'sesn_{stage.workspace_id}_refused_' || n", "status": "'idle'", "waits_for": "'none'"} | created
        copy(db, "session", f"id = '{session_id}'", refused | {"stop_reason": """'{"type": "refusal"}'"""}, count - 1)
        acts = {"chain": name, "at": f"row.at - interval '1 second' * ({count} - n)"}
        copy(db, "audit", f"chain = '{session_id}'", acts, count - 1)
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


def turns_of(admin: str, stage: Any, count: int) -> str:
    """Create a session with `count` turns, each with a call that waited for a person. Returns its id."""
    from rows import crowd
    from rows.stage import call, say

    session_id: str = stage.session(max_turns=9)
    stage.message(session_id)
    [tool_call] = stage.reply(session_id, call(command="make"))
    [approval] = stage.approvals(session_id)
    stage.decide(approval, result="allow")
    stage.run_call(tool_call)
    stage.reply(session_id, say("Done."))
    with psycopg.connect(admin, autocommit=True) as db:
        crowd.turns_of_a_session(db, session_id, count)
        db.execute("VACUUM ANALYZE")
    return session_id


def main() -> int:
    """Measure, and print. Returns 1 if a ratio is above the bound."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--sessions", type=int, default=100_000)
    options.add_argument("--only", default="")
    rounds, events, most, only = vars(options.parse_args()).values()
    from faults.own_redis import own_redis

    with tempfile.TemporaryDirectory() as place, stack(Path(place)) as urls, own_redis(Path(place)) as redis:
        os.environ |= {"DATABASE_URL": urls["app"], "DATABASE_SYSTEM_URL": urls["system"], "REDIS_URL": redis.url}
        os.environ["ASSENT_REQUESTS_PER_SECOND"] = "0"
        import people
        from rows.stage import Stage

        lists = [(path, pair) for pair in (COUNTS, (COUNTS[1], most)) for path in PAGES]
        lists += [(path, (FEW_SEARCHED, most)) for path in SEARCHES]
        lists = [(path, pair) for path, pair in lists if only in path]
        counts = sorted({COUNTS[0], *(count for _, pair in lists for count in pair)})
        stages = {count: Stage() for count in counts}
        for count, stage in stages.items():
            queue(urls["postgres"], stage, count)
        members = {count: people.member(stage, "admin") for count, stage in stages.items()}
        with web(100) as (port, _process):
            clients = {count: member.client(f"http://127.0.0.1:{port}") for count, member in members.items()}
            ratios = [_ratio(path, pair, [(clients[count], path) for count in pair], rounds) for path, pair in lists]
            own = clients[COUNTS[0]]
            for name, (sizes, paths) in _sessions(urls["postgres"], stages[COUNTS[0]], (200, events), only).items():
                ratios.append(_ratio(name, sizes, [(own, path) for path in paths], rounds))
    return int(max(ratios) > BOUND)


def _sessions(admin: str, stage: Any, sizes: tuple[int, int], only: str) -> dict[str, tuple[tuple[int, int], list[str]]]:
    """Create a small and a large session for each row that `only` leaves. Returns their sizes and pages by the row's name."""
    pages: dict[str, tuple[tuple[int, int], list[str]]] = {}
    newest, middle = "newest events of a session", "events in the middle of a session"
    if only in newest or only in middle:
        paths = [f"/inbox/sessions/{history(admin, stage, size)}" for size in sizes]
        pages[newest] = (sizes, paths)
        pages[middle] = (sizes, [f"{path}?before={size // 2}" for path, size in zip(paths, sizes, strict=True)])
    if only in "lanes of a session":
        pages["lanes of a session"] = (TURNS, [f"/inbox/sessions/{turns_of(admin, stage, count)}" for count in TURNS])
    return {name: page for name, page in pages.items() if only in name}


def _ratio(name: str, sizes: tuple[int, ...], requests: list[tuple[httpx2.Client, str]], rounds: int) -> float:
    """Load the small and the large page by turns, and print both medians. Returns their ratio."""
    for client, path in requests * 3:
        seconds(client, path)
    times: list[list[float]] = [[] for _ in requests]
    for _ in range(rounds):
        for (client, path), own in zip(requests, times, strict=True):
            own.append(seconds(client, path))
    small, large = (1000 * statistics.median(own) for own in times)
    say(f"{name:34} {sizes[0]}: {small:.1f} ms, {sizes[1]}: {large:.1f} ms, ratio {large / small:.2f} (bound {BOUND})")
    return large / small


if __name__ == "__main__":
    sys.exit(main())
