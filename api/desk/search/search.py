"""One search for pages, actions, approvals, sessions, agents and people, limited to what the person may see.

It looks at the newest rows of each kind (`SEARCHED`), by the index of their creation, so that its cost does not grow with the
table. An id leads to its row however old the row is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeVar
from urllib.parse import urlencode

from api.desk.rendering.gist import gist
from api.desk.shell import places
from api.desk.shell.blueprint import page
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.parsing import ID
from api.v1.approvals.visible import only_own
from models.database import clock
from models.database.rows import Db
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.pure.state_words import StateWord, session_state
from models.pure.text.visible import visible
from models.session.approval.row import Approval
from models.session.event.last_lines import NAME, names_of
from models.session.row import Session

R = TypeVar("R")
SEARCHED = 2000
"""Rows of a kind that are searched: the newest."""
_MOST_SHOWN = 8
_MOST_TEXT = 200
"""Characters of a search."""
_AGENTS = """
    SELECT a.id, v.name FROM (SELECT id, version, created_at FROM agent ORDER BY created_at DESC, id DESC LIMIT %(searched)s) a
    CROSS JOIN LATERAL (SELECT body->>'name' AS name FROM agent_version WHERE agent_id = a.id AND version = a.version LIMIT 1) v
    WHERE a.id = %(exact)s OR v.name ILIKE %(pattern)s ORDER BY a.created_at DESC LIMIT %(most)s
"""
_PEOPLE = """
    SELECT id, name, email FROM (
        SELECT person_id FROM member WHERE workspace_id = %(workspace)s AND deactivated_at IS NULL
        ORDER BY person_id DESC LIMIT %(searched)s
    ) newest CROSS JOIN LATERAL (SELECT id, name, email FROM person WHERE id = person_id LIMIT 1) person
    WHERE id = %(exact)s OR name ILIKE %(pattern)s OR email ILIKE %(pattern)s ORDER BY name LIMIT %(most)s
"""


@dataclass(frozen=True)
class Match:
    """One thing that fits the search."""

    label: str
    path: str
    glyph: str
    about: str = ""
    """What tells the thing apart from others of its name."""
    state: StateWord | None = None
    is_code: bool = False
    """True for a command, a path or a pattern."""


@page("/inbox/search", "search", "own or read")
def search(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show what fits the words, by kind."""
    text = " ".join((query_value("q") or "").replace("\0", " ").split())[:_MOST_TEXT]
    kinds = {kind: some for kind, some in matches(db, person, text).items() if some}
    audit = f"/inbox/audit?{urlencode({'q': text})}" if text and "admin" in person.scopes else ""
    return FramedPage("search/search.html", q=text, kinds=kinds, searched=SEARCHED, audit=audit)


def matches(db: Db, person: PersonPrincipal, text: str) -> dict[str, Sequence[Match]]:
    """Return what fits the text, by kind."""
    kinds: dict[str, Sequence[Match]] = {"Go to": _places(person, text)}
    if not text:
        return kinds
    pattern = "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    kinds |= {"Approvals": approvals(db, person, text, pattern), "Sessions": _sessions(db, person, text, pattern)}
    values = {"exact": text, "pattern": pattern, "searched": SEARCHED, "most": _MOST_SHOWN}
    if "read" in person.scopes:
        kinds["Agents"] = [Match(name, _path_of_agent(id_), "agent") for id_, name in db.rows(_AGENTS, **values)]
    if "admin" in person.scopes:
        people = db.rows(_PEOPLE, workspace=person.workspace_id, **values)
        kinds["People"] = [Match(name, f"/inbox/people#{id_}", "person", email) for id_, name, email in people]
    return kinds


def _places(person: PersonPrincipal, text: str) -> list[Match]:
    """Return the pages and actions whose words begin like each word of the text; all pages without a text."""
    open_places = [*places.rail_of(person), *chain(*places.settings_of(person).values()), *places.actions_of(person)]
    return [Match(place.label, place.path, place.glyph, place.purpose) for place in open_places if place.fits(text)]


def approvals(db: Db, person: PersonPrincipal, text: str, pattern: str) -> list[Match]:
    """Return the approvals whose id is the text, or whose prompt or tool has it."""
    selection = _matching(db, Selection(Approval), "prompt ILIKE %(pattern)s OR tool ILIKE %(pattern)s", text, pattern)
    rows = only_own(db, person, selection, "id").select(db, "ORDER BY created_at DESC, id DESC LIMIT %(most)s", most=_MOST_SHOWN)
    names, now = Names.of(db, [row.decided_by for row in rows]), clock.now(db)
    return [_of_approval(row, " · ".join(filter(None, (_end(row, names, now), row.path(db))))) for row in rows]


def _end(row: Approval, names: Names, now: datetime) -> str:
    """Return by whom and on which day an approval was decided; empty while it waits."""
    if row.decided_at is None:
        return ""
    at = row.decided_at
    day = f"{at:%a}, {at.day} {at:%b}" + ("" if at.year == now.year else f" {at.year}")
    return f"{visible(names[row.decided_by])}, {day}" if row.by_person else day


def _sessions(db: Db, person: PersonPrincipal, text: str, pattern: str) -> list[Match]:
    selection = _matching(db, Selection(Session), f"{NAME} ILIKE %(pattern)s", text, pattern)
    rows = only_own(db, person, selection, "id", of="session_id").select(
        db, "ORDER BY created_at DESC, id DESC LIMIT %(most)s", most=_MOST_SHOWN
    )
    titles, held_work = names_of(db, [row.id for row in rows]), Session.held_work(db, rows)
    return [
        Match(titles[row.id], f"/inbox/sessions/{row.id}", "sessions", "", _state(row, is_held=row.id in held_work.sessions))
        for row in rows
    ]


def _matching(db: Db, selection: Selection[R], condition: str, text: str, pattern: str) -> Selection[R]:
    """Return the rows whose id is the text, or the newest that meet the condition."""
    if ID.fullmatch(text):
        return selection.where("id = %(exact)s", exact=text)
    return selection.among_newest(db, SEARCHED).where(f"({condition})", pattern=pattern)


def _state(row: Session, *, is_held: bool) -> StateWord:
    return session_state(row.status, row.stop_reason, is_held=is_held, archived=row.archived_at is not None)


def _of_approval(row: Approval, about: str) -> Match:
    line = gist(row)
    label = " ".join(filter(None, (line.text, line.more)))
    return Match(label, f"/inbox/approvals/{row.id}", line.glyph, about, row.state, is_code=line.is_code)


def _path_of_agent(agent_id: str) -> str:
    """Return the address of an agent's page, or of its calls that wait."""
    return f"/inbox/agents/{agent_id}" if places.exists("/inbox/agents/<agent_id>") else f"/inbox?show=all&agent={agent_id}"
