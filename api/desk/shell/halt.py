"""The kill switch: an admin halts the workspace, and lifts the halt."""

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.halt import HaltStart
from models.database.rows import Db
from models.errors import Refusal
from models.people.principal import PersonPrincipal
from models.workspace.halt import Halt


@page("/inbox/halt", "halt", "admin")
def halt(_db: Db, _person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show what a halt does, with the button that starts or lifts it."""
    return FramedPage("shell/halt.html", refusal=str(refusal or ""), reason=request.form.get("reason", ""))


@action("/inbox/halt", "admin", section="halt", again=halt)
def start_halt(db: Db, person: PersonPrincipal) -> str:
    """Halt the workspace: nothing begins from now on."""
    reason = request.form.get("reason") or None
    Halt.start(db, person, validated(HaltStart, {"reason": reason}).reason)
    return "/inbox"


@action("/inbox/halt/end", "admin", section="halt", again=halt)
def end_halt(db: Db, person: PersonPrincipal) -> str:
    """Lift the halt."""
    Halt.end(db, person)
    return "/inbox"
