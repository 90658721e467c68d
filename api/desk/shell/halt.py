"""The kill switch: an admin halts the workspace, and lifts the halt."""

from flask import request

from api.desk.shell.blueprint import action
from api.door.parsing import validated
from api.v1.halt import HaltStart
from models.database.rows import Db
from models.people.principal import PersonPrincipal
from models.workspace.halt import Halt


@action("/inbox/halt", "admin")
def start_halt(db: Db, person: PersonPrincipal) -> str:
    """Halt the workspace: nothing begins from now on."""
    reason = request.form.get("reason") or None
    Halt.start(db, person, validated(HaltStart, {"reason": reason}).reason)
    return "/inbox"


@action("/inbox/halt/end", "admin")
def end_halt(db: Db, person: PersonPrincipal) -> str:
    """Lift the halt."""
    Halt.end(db, person)
    return "/inbox"
