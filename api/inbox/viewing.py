"""What every page shows beside its own content: who looks, the count of what waits, and whether the workspace is halted."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import g
from markupsafe import Markup

from api import browser
from api.inbox import queue
from models.database import clock
from models.database.rows import Db
from models.flow.names import Names
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.session.approval_mark import approval_mark
from models.workspace.halt import Halt


def csrf_field() -> Markup:
    """The field by which a form proves that it comes from a page of ours."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(browser.TOKEN_FIELD, browser.token())


@dataclass(frozen=True)
class Viewer:
    """The signed-in person, as templates know it."""

    name: str
    person: PersonPrincipal

    def may(self, scope: str) -> bool:
        """True if the person's role has this scope."""
        return scope in self.person.scopes

    @property
    def is_admin(self) -> bool:
        """True if the person manages people, keys and the audit."""
        return self.may("admin")


def frame(db: Db, person: PersonPrincipal) -> dict[str, Any]:
    """What base.html shows besides the page. Reads the time that the page's relative times count from."""
    g.now = clock.now(db)
    row = db.get_one(Person, person.person_id)
    waiting = queue.matching(db, person, {}, mine=True).count(db)
    return {
        "viewer": Viewer(row.name, person),
        "waiting_for_me": waiting,
        "halted": _halt(db),
        "mark": approval_mark(db),
        "now": g.now,
    }


def _halt(db: Db) -> dict[str, Any] | None:
    """The open halt, if the workspace is halted."""
    halt = Halt.current(db)
    return {"by": Names.of(db, [halt.started_by])[halt.started_by], "at": halt.started_at, "reason": halt.reason} if halt else None


def now() -> datetime:
    """The database's time, as this request read it."""
    at: datetime = g.now
    return at
