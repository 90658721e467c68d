"""The queue: which approvals a person sees, in which order, and what comes next."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from flask import request

from api.paging import Order, Wanted
from models.database import clock
from models.database.rows import Db
from models.database.transactions import outbox
from models.people.principal import PersonPrincipal
from models.session.approval import Approval
from models.session.evidence import FRESH_SECONDS, SHOWN_WITH_FILES, Evidence, look_hint
from models.session.session import Session
from models.workspace.agent import Agent

ORDER: Order[Approval] = Order("queue", (Approval.expires_at, Approval.id), lambda a: (a.expires_at, a.id), descending=False)
"""The oldest deadline first."""
_CHOICES = 200


def matching(person: PersonPrincipal, filters: dict[str, str | None], *, mine: bool, status: str = "pending") -> Wanted[Approval]:
    """The approvals that this person sees and that the filters name. A search looks at prompts and tools, which show no secrets."""
    wanted = Wanted(Approval).where("status = 'pending'" if status == "pending" else "status <> 'pending'")
    names = {"agent_id": filters.get("agent"), "tool": filters.get("tool"), "session_id": filters.get("session")}
    wanted = wanted.equal(**names, kind=filters.get("kind"))
    if words := filters.get("q"):
        pattern = "%" + words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        wanted = wanted.where("(prompt ILIKE %(words)s OR tool ILIKE %(words)s)", words=pattern)
    return wanted


def count(db: Db, person: PersonPrincipal, filters: dict[str, str | None], *, mine: bool) -> int:
    """How many of them wait."""
    wanted = matching(person, filters, mine=mine)
    return int(db.value(f"SELECT count(*) FROM approval WHERE {' AND '.join(wanted.conditions)}", **wanted.values))  # noqa: S608 - conditions of our own


def choices(db: Db, person: PersonPrincipal) -> dict[str, list[Any]]:
    """What the list can be filtered by: the tools of what waits."""
    tools = db.rows("SELECT DISTINCT tool FROM approval WHERE status = 'pending' ORDER BY tool LIMIT %(most)s", most=_CHOICES)
    agents = db.rows("SELECT DISTINCT agent_id FROM approval WHERE status = 'pending' LIMIT %(most)s", most=_CHOICES)
    versions = [Agent.find(db, agent_id).at(db) for (agent_id,) in agents if agent_id]
    return {
        "tool": [tool for (tool,) in tools],
        "agent": sorted(((row.agent_id, row.body["name"]) for row in versions), key=lambda one: one[1]),
    }


def why_not(db: Db, person: PersonPrincipal, approval: Approval) -> str | None:
    """Why this person may not decide the approval; None if the person may."""
    if "approvals" not in person.scopes:
        return f"Your role, {person.role}, does not decide."
    return None


def following(db: Db, person: PersonPrincipal, after: str | None, held: Sequence[str] = ()) -> Approval | None:
    """The next approval that waits for this person behind `after`, or else the first.

    `held` are those that the page is about to decide.
    """
    mine = matching(person, {}, mine=True).where("id <> ALL(%(held)s)", held=[after or "", *held])
    end = "ORDER BY expires_at, id LIMIT 1"
    passed = db.get(Approval, after) if after else None
    if passed is not None:
        behind = mine.where("(expires_at, id) > (%(deadline)s, %(after)s)", deadline=passed.expires_at, after=passed.id)
        if found := behind.select(db, end):
            return found[0]
    return next(iter(mine.select(db, end)), None)


def address_of_next(db: Db, person: PersonPrincipal, *, after: str | None, decided: str | None, held: Sequence[str] = ()) -> str:
    """Where a person goes on behind `after`: the next card, or the list if nothing else waits."""
    found = following(db, person, after or decided, held)
    query = f"?decided={quote(decided)}" if decided else ""
    return f"/inbox/approvals/{found.id}{query}" if found else f"/inbox{query}"


def position(db: Db, person: PersonPrincipal, approval: Approval) -> tuple[int, int]:
    """The approval's place in the person's queue, from 1, and the queue's length."""
    mine = matching(person, {}, mine=True)
    where = " AND ".join(mine.conditions)
    before = "count(*) FILTER (WHERE (expires_at, id) <= (%(deadline)s, %(id)s))"
    values: dict[str, Any] = mine.values | {"deadline": approval.expires_at, "id": approval.id}
    [(place, length)] = db.rows(f"SELECT {before}, count(*) FROM approval WHERE {where}", **values)  # noqa: S608 - conditions of our own
    return int(place), int(length)


def may_see(db: Db, person: PersonPrincipal, approval: Approval) -> bool:
    """True if this person sees the approval at all."""
    return True


def look(db: Db, approval: Approval) -> dict[str, Any] | None:
    """What a tools worker saw of the session's files; None if none has looked. A card that is opened has a worker look again."""
    if approval.tool not in SHOWN_WITH_FILES:
        return None
    found = db.get(Evidence, approval.id)
    fresh = found is not None and (clock.now(db) - found.looked_at).total_seconds() < FRESH_SECONDS
    # A page that refreshes itself must not be the cause of its next refresh.
    if approval.status == "pending" and not fresh and "x-refresh" not in request.headers:
        outbox(db).hints.append(look_hint(approval.id, approval.session_id, approval.workspace_id))
    body: dict[str, Any] | None = approval.echoes.value(found.body) if found is not None else None
    return body


def may_see_session(db: Db, person: PersonPrincipal, session: Session) -> bool:
    """True if this person sees the session: every one, or those that asked this person something."""
    if "read" in person.scopes:
        return True
    return any(may_see(db, person, row) for row in db.find(Approval, "WHERE session_id = %(id)s LIMIT 100", id=session.id))
