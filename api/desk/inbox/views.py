"""What a person keeps of the list: views with a name, and the groups that are folded."""

from flask import request

from api.desk.inbox.list import ListAddress
from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import text
from api.door.framed import FramedPage
from models.database.rows import Db
from models.errors import Invalid, Refusal
from models.people import saved_view
from models.people.person import Person
from models.people.principal import PersonPrincipal

MOST_GROUPS = 100
"""Folded groups that are remembered: the newest."""
_LONGEST_GROUP = 200


@page("/inbox/views", "views", "own or read")
def saved_views(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the person's views, to open, rename and delete them."""
    row = db.get_one(Person, person.person_id)
    return FramedPage("inbox/views.html", views=saved_view.views_of(row), most=saved_view.MOST, refusal=str(refusal or ""))


@action("/inbox/views", "own or read", section="views", again=saved_views)
def save_view(db: Db, person: PersonPrincipal) -> str:
    """Store the list of the form's address under a name, and go there."""
    address = ListAddress.of_query(text("query"), person)
    saved_view.save(db.get_one(Person, person.person_id, lock=True), text("name"), address.query())
    return address.path()


@action("/inbox/views/change", "own or read", section="views", again=saved_views)
def change_view(db: Db, person: PersonPrincipal) -> str:
    """Rename or delete a view."""
    row = db.get_one(Person, person.person_id, lock=True)
    match request.form.get("do"):
        case "rename":
            saved_view.rename(row, text("view"), text("name"))
        case "delete":
            saved_view.delete(row, text("view"))
        case _:
            raise Invalid("do", "must be rename or delete.")
    return "/inbox/views"


@action("/inbox/folded-groups", "own or read")
def fold_group(db: Db, person: PersonPrincipal) -> str:
    """Remember that a group of the list is folded, or open again, for this person alone."""
    row, group = db.get_one(Person, person.person_id, lock=True), text("group")
    if not 1 <= len(group) <= _LONGEST_GROUP:
        raise Invalid("group", f"must have 1 to {_LONGEST_GROUP} characters.")
    others = [each for each in row.folded_groups or [] if each != group]
    row.folded_groups = ([*others, group] if request.form.get("open") == "no" else others)[-MOST_GROUPS:] or None
    return "/inbox"
