"""A workspace's past calls in pages, newest sessions first, and how each was decided."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from models.database.rows import Db
from models.session.approval.grant import Grant
from models.session.approval.kinds import tool_call

Then = Literal[
    "allowed_by_policy",
    "allowed_by_grant",
    "allowed_by_person",
    "allowed_at_deadline",
    "answered_by_person",
    "denied_by_policy",
    "denied_by_person",
    "expired",
    "cancelled",
    "waiting",
]
"""How a call was decided, whether or not it ran afterwards."""

SESSIONS = 50
CALLS = 100
"""Most calls in memory at once: an input can have a megabyte."""

_SESSIONS = """
    SELECT id, created_at FROM session
    WHERE workspace_id = %(workspace)s AND updated_at >= %(since)s
    AND (%(agent)s::text IS NULL OR agent_id = %(agent)s
        OR EXISTS (SELECT FROM thread WHERE session_id = session.id AND agent_id = %(agent)s))
    AND (%(last)s::text IS NULL OR (created_at, id) < (%(last_at)s, %(last)s)) ORDER BY created_at DESC, id DESC LIMIT %(limit)s
"""
_THREADS = """
    SELECT t.id, md5(concat(s.agent_id, s.agent_version, s.long_results, s.overrides::text, t.parent_id IS NULL, t.agent_id,
        t.agent_version, CASE WHEN t.inline THEN t.id END))
    FROM thread t JOIN session s ON s.id = t.session_id
    WHERE t.session_id = ANY(%(sessions)s) AND (%(agent)s::text IS NULL OR %(agent)s IN (s.agent_id, t.agent_id))
"""
"""The threads whose calls the policy of an agent can decide: its own, and those that it began.

Each has a hash of the columns that decide its rules: threads with the same hash (`look`) share their rules."""
_CALLS = """
    SELECT id, session_id, thread_id, name, permission, rule, grants, created_at, coalesce(proposed_input, input), shown_input
    FROM tool_call JOIN call_input ON tool_call_id = id
    WHERE turn_id = ANY (ARRAY(SELECT id FROM turn WHERE session_id = ANY(%(sessions)s) AND thread_id = ANY(%(threads)s)))
    AND created_at >= %(since)s AND (%(tool)s::text IS NULL OR name = %(tool)s)
    AND (%(before)s::text IS NULL OR id < %(before)s) AND NOT (status = 'refused' AND permission = 'deny')
    AND NOT (proposed_input IS NOT NULL AND permission = 'allow') ORDER BY id DESC LIMIT %(limit)s
"""
"""Leaves out calls with faulty inputs, and the copies of calls whose input a person edited."""
_ASKED = f"""
    SELECT tool_call_id, status, decided_by FROM approval WHERE tool_call_id = ANY(%(calls)s) AND {tool_call.KIND.sql}
    ORDER BY created_at, id
"""  # noqa: S608 - a condition of our own


class PastCall(NamedTuple):
    """One call, with its input as the model proposed it."""

    id: str
    session_id: str
    thread_id: str
    name: str
    permission: str
    rule: str
    grants: list[str] | None
    created_at: datetime
    input: dict[str, Any]
    shown_input: dict[str, Any] | None
    """The input with its secrets masked; None if it has no secrets."""


_ALLOWED: dict[str, Then] = {"grant": "allowed_by_grant", "system": "allowed_at_deadline"}
_ENDED: dict[str, Then] = {
    "pending": "waiting",
    "denied": "denied_by_person",
    "answered": "answered_by_person",
    "expired": "expired",
    "cancelled": "cancelled",
}


def pages(
    db: Db, workspace_id: str, since: datetime, *, agent_id: str | None = None, tool: str | None = None
) -> Iterator[tuple[dict[str, str], list[PastCall]]]:
    """Yield the looks of the threads of at most SESSIONS sessions by id, and at most CALLS calls of these threads."""
    which = {"workspace": workspace_id, "since": since, "agent": agent_id, "limit": SESSIONS}
    sessions = db.rows(_SESSIONS, **which, last=None, last_at=None)
    while sessions:
        session_ids = [session_id for session_id, _ in sessions]
        looks: dict[str, str] = dict(db.rows(_THREADS, sessions=session_ids, agent=agent_id))
        of_threads = {"sessions": session_ids, "threads": list(looks), "since": since, "tool": tool}
        calls = _calls(db, of_threads)
        yield looks, calls
        while len(calls) == CALLS:
            calls = _calls(db, of_threads, before=calls[-1].id)
            yield looks, calls
        last, last_at = sessions[-1]
        sessions = db.rows(_SESSIONS, **which, last=last, last_at=last_at)


def _calls(db: Db, of_threads: Mapping[str, Any], before: str | None = None) -> list[PastCall]:
    """Return the newest calls of these threads that are older than the call `before`. Ids sort by time."""
    return [PastCall(*row) for row in db.rows(_CALLS, **of_threads, before=before, limit=CALLS)]


def grants_of(db: Db, calls: list[PastCall]) -> dict[str, Grant]:
    """Return the grants that allowed these calls, by id, revoked ones too."""
    ids = {grant_id for call in calls for grant_id in call.grants or ()}
    return {grant.id: grant for grant in db.find(Grant, "WHERE id = ANY(%(ids)s)", ids=list(ids))} if ids else {}


def decided_how(db: Db, calls: list[PastCall]) -> dict[str, Then]:
    """Return how each of these calls was decided, by id."""
    asking = [call.id for call in calls if call.permission == "ask"]
    ends = {call_id: (status, decided_by) for call_id, status, decided_by in db.rows(_ASKED, calls=asking)} if asking else {}
    return {call.id: _end(call, *ends.get(call.id, (None, None))) for call in calls}


def _end(call: PastCall, status: str | None, decided_by: str | None) -> Then:
    if call.permission == "deny":
        return "denied_by_policy"
    if call.permission == "allow":
        return "allowed_by_grant" if call.grants else "allowed_by_policy"
    if status is None:
        return "waiting"
    if status == "allowed":
        return _ALLOWED.get((decided_by or "").partition(":")[0], "allowed_by_person")
    return _ENDED[status]
