"""Pages of the settings about deciding: a person's keys, and the workspace's reasons for a denial."""

from flask import request

from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import text
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.policy.requests import PolicyUpdate
from models.database.rows import Db
from models.errors import Invalid, Refusal
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.workspace import denial_reasons
from models.workspace.row import Workspace


@page("/inbox/keyboard", "keyboard", "own or read")
def keyboard(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show whether single keys decide."""
    return FramedPage("inbox/keyboard.html", row=db.get_one(Person, person.person_id))


@action("/inbox/keyboard", "own or read", section="keyboard")
def set_keyboard(db: Db, person: PersonPrincipal) -> str:
    """Switch the keys that decide on or off, for this person alone."""
    db.get_one(Person, person.person_id, lock=True).decides_by_keys = request.form.get("decides_by_keys") == "yes"
    return "/inbox/keyboard"


@page("/inbox/denial-reasons", "denial_reasons", "admin")
def reasons(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the workspace's reasons for a denial, a line each."""
    own_reasons = db.get_one(Workspace, person.workspace_id).denial_reasons
    lines = text("reasons") if refusal else "\n".join(denial_reasons.DEFAULT if own_reasons is None else own_reasons)
    return FramedPage("inbox/denial_reasons.html", lines=lines, most=denial_reasons.MOST, refusal=str(refusal or ""))


@action("/inbox/denial-reasons", "admin", section="denial_reasons", again=reasons)
def set_reasons(db: Db, person: PersonPrincipal) -> str:
    """Store the reasons, or restore the built-in ones."""
    lines = None if request.form.get("do") == "restore" else [line for line in text("reasons").splitlines() if line.strip()]
    if lines and len(lines) > denial_reasons.MOST:
        raise Invalid("", f"These are {len(lines)} reasons. At most {denial_reasons.MOST} fit below a card.")
    Workspace.change_policies(db, person, validated(PolicyUpdate, {"denial_reasons": lines}).changes())
    return "/inbox/denial-reasons"
