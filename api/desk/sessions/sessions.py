"""The list of sessions, as a table by state: for whom each waits and since when, its last line, its cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from api.desk.sessions.naming import agent_name, cost
from api.desk.shell.blueprint import page
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.paging import page as page_of
from api.v1.agents.routes import heads
from api.v1.approvals.visible import only_own, sees_all
from api.v1.sessions.responses import WAITING
from api.v1.sessions.routes import NEWEST
from models.database import clock
from models.database.rows import Db
from models.flow.judge.approvers import awaited_names
from models.people.member import Member
from models.people.principal import PersonPrincipal
from models.pure.state_words import StateWord, session_state
from models.pure.text.visible import visible
from models.session.approval.row import Approval
from models.session.event.last_lines import UNNAMED, first_and_last_lines
from models.session.row import AT_WORK, NEEDS_ATTENTION, Session
from models.session.thread.row import Thread
from models.workspace.agent import Agent

_SESSIONS = 50
_MOST_CHOICES = 200
SEARCHED = 20_000
"""Sessions among which the filters by agent and person look: the newest, so that a rare name costs no more than a common one."""
_SINCE = {"1d": ("Last day", 1), "7d": ("Last week", 7), "30d": ("Last month", 30)}
_TABS = (("", "All"), ("working", "Working"), ("waiting", "Waiting"), ("attention", "Needs attention"))
_OF_PERSON = "(on_behalf_of = %(person)s OR %(person)s = ANY(speakers))"


@dataclass(frozen=True)
class SessionLine:
    """One session of the list."""

    session: Session
    agent: str
    state: StateWord
    whom: str
    """For whom it waits; empty if it does not wait."""
    since: datetime | None
    """Since when it waits."""
    waits: int
    """Number of approvals that wait."""
    title: str
    """The session's title, or how its first message begins."""
    text: str
    """How its newest message or error begins."""
    cost: str


@page("/inbox/sessions", "sessions", "own or read")
def sessions(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show the sessions that the person may see, newest first."""
    tab, filters = query_value("tab") or "", {name: query_value(name) for name in ("agent", "person", "since")}
    selection = filtered(db, person, filters)
    rows, after = page_of(db, _of_tab(selection, tab), NEWEST, _SESSIONS, query_value("page"))
    return FramedPage(
        "sessions/sessions.html",
        lines=_lines(db, rows),
        tabs=[
            (label, _address(filters, tab=name), name == tab, _of_tab(selection, name).count(db) if name else None)
            for name, label in _TABS
        ],
        times=[
            ("Any time", _address(filters | {"since": None}, tab=tab), not filters["since"]),
            *((label, _address(filters | {"since": key}, tab=tab), filters["since"] == key) for key, (label, _) in _SINCE.items()),
        ],
        tab=tab,
        filters=filters,
        is_filtered=any(filters.values()),
        searched=SEARCHED if filters["agent"] or filters["person"] else 0,
        choices=_choices(db, person),
        after=_address(filters, tab=tab, page=after) if after else "",
        may_start="sessions" in person.scopes,
    )


def filtered(db: Db, person: PersonPrincipal, filters: dict[str, str | None]) -> Selection[Session]:
    """Return the sessions that the person may see and that fit the filters `agent`, `person` and `since`."""
    selection = only_own(db, person, Selection(Session), "id", of="session_id")
    if filters["since"] in _SINCE:
        days = _SINCE[filters["since"]][1]
        selection = selection.where("created_at > %(since)s", since=clock.now(db) - timedelta(days=days))
    if filters["agent"]:
        selection = selection.where("agent_id = %(agent)s", agent=filters["agent"])
    if filters["person"]:
        selection = selection.where(_OF_PERSON, person=filters["person"])
    return selection.among_newest(db, SEARCHED) if filters["agent"] or filters["person"] else selection


def _of_tab(selection: Selection[Session], tab: str) -> Selection[Session]:
    match tab:
        case "working":
            return selection.where(AT_WORK)
        case "waiting":
            return selection.among("waits_for", WAITING["any"])
        case "attention":
            return selection.where(NEEDS_ATTENTION)
    return selection


def _lines(db: Db, rows: Sequence[Session]) -> list[SessionLine]:
    waiting_ids = [row.id for row in rows if row.waits_for != "none"]
    first: dict[str, Approval] = {}
    counts: dict[str, int] = {}
    for approval in Approval.pending(db, *waiting_ids):
        first.setdefault(approval.session_id, approval)
        counts[approval.session_id] = counts.get(approval.session_id, 0) + 1
    names = awaited_names(db, list(first.values()))
    with_clients = Thread.waiting_since(db, [session_id for session_id in waiting_ids if session_id not in first])
    texts = first_and_last_lines(db, [row.id for row in rows])
    held_work, lines = Session.held_work(db, rows), []
    for row in rows:
        oldest, waits = first.get(row.id), row.waits_for != "none"
        lines.append(
            SessionLine(
                session=row,
                agent=agent_name(db, row),
                state=session_state(row.status, row.stop_reason, waits=waits, is_held=row.id in held_work.sessions),
                whom=names[oldest.id] if oldest else "the client" if waits else "",
                since=oldest.created_at if oldest else with_clients.get(row.id),
                waits=counts.get(row.id, 0),
                title=visible(row.title or texts[row.id][0] or UNNAMED),
                text=visible(texts[row.id][1]),
                cost=cost(row),
            )
        )
    return lines


def _address(filters: dict[str, str | None], **more: str | None) -> str:
    query = {name: value for name, value in {**filters, **more}.items() if value}
    return "/inbox/sessions" + (f"?{urlencode(query)}" if query else "")


def _choices(db: Db, person: PersonPrincipal) -> dict[str, list[tuple[str, str]]]:
    """Return the agents and people by which the list can be filtered; none for a person who sees few sessions."""
    if not sees_all(person):
        return {"agent": [], "person": []}
    agents = db.find(Agent, "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s", most=_MOST_CHOICES)
    versions: dict[str, Any] = heads(db, agents)
    named_agents = [(row.id, versions[row.id].body["name"]) for row in agents]
    return {"agent": named_agents, "person": Member.names(db, _MOST_CHOICES)}
