"""The parts that every page shows around its content: the signed-in person, the count of waiting approvals, the halt."""

from datetime import datetime
from typing import Any

from flask import g, request
from markupsafe import Markup

from api.desk import waiting_list
from api.desk.shell import places
from api.door import browser
from api.door.paging import Selection
from api.v1.approvals.visible import sees_all
from models.database import clock
from models.database.rows import Db
from models.people.names import Names
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.pure.text.visible import visible
from models.session.approval.row import Approval
from models.session.row import NEEDS_ATTENTION, Session
from models.workspace.halt import Halt
from models.workspace.row import Workspace

_RAIL_COOKIE = "assent_rail"
"""Set by `going.js`: `narrow` if the person has collapsed the rail."""
_PROGRAMS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
)
_PLATFORMS = ("Android", "iPhone", "iPad", "Windows", "Macintosh", "CrOS", "Linux")
"""Words of a User-Agent, the most telling first."""


def csrf_field() -> Markup:
    """Return the hidden field that proves that a form comes from a page of ours."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(browser.TOKEN_FIELD, browser.token())


def frame(db: Db, person: PersonPrincipal) -> dict[str, Any]:
    """Return the values that base.html shows around the page. Reads the time from which the page's relative times count."""
    g.now, g.halted = clock.now(db), _halt(db)
    row = db.get_one(Person, person.person_id)
    of_viewer = {"name": row.name, "initials": initials(row.name), "is_admin": "admin" in person.scopes}
    return {
        "viewer": of_viewer | {"decides_by_keys": row.decides_by_keys},
        "rail": places.rail_of(person),
        "settings_parts": places.settings_of(person),
        "is_rail_narrow": request.cookies.get(_RAIL_COOKIE) == "narrow",
        "workspace": visible(db.get_one(Workspace, person.workspace_id).name),
        "sessions_unfinished": Selection(Session).where(NEEDS_ATTENTION).count(db) if sees_all(person) else 0,
        "waiting_for_me": waiting_list.matching(db, person, {}, mine=True).count(db),
        "halted": g.halted,
        "mark": Approval.mark(db),
        "now": g.now,
    }


def initials(name: str) -> str:
    """Return the one or two letters that stand for a person: `CW` for Chen Wei."""
    words = [word for word in visible(name).split() if word[0].isalnum()]
    return "".join(word[0] for word in words[:1] + words[1:][-1:]).upper() or "?"


def _halt(db: Db) -> dict[str, Any] | None:
    """Return the open halt; None if the workspace is not halted."""
    halt = Halt.current(db)
    return {"by": Names.of(db, [halt.started_by])[halt.started_by], "at": halt.started_at, "reason": halt.reason} if halt else None


def halted() -> bool:
    """True if `frame` or the page found the workspace halted in this request: no deadline passes then."""
    return bool(g.get("halted"))


def now() -> datetime:
    """Return the database's time that `frame` or the page read in this request."""
    at: datetime = g.now
    return at


def browser_name(user_agent: str) -> str:
    """Return a name for a browser, such as `Chrome on Android`, by its User-Agent."""
    program = next((name for word, name in _PROGRAMS if word in user_agent), "A browser")
    platform = next((word for word in _PLATFORMS if word in user_agent), "")
    return f"{program} on {platform}" if platform else program
