"""Groups, for admins: their members, as approvals name them."""

from collections.abc import Callable
from typing import Any

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.people.requests import GroupCreate
from models.database.rows import Db
from models.errors import Invalid, Refusal
from models.people.group import Group, Membership
from models.people.member import DIRECT, Member
from models.people.person import Person
from models.people.principal import PersonPrincipal

_MOST = 500
"""People, and groups, that the page shows."""


@page("/inbox/groups", "groups", "admin")
def groups(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> FramedPage:
    """Show the groups of the workspace, each with its members."""
    members = db.find(Member, "WHERE deactivated_at IS NULL ORDER BY person_id DESC LIMIT %(most)s", most=_MOST)
    ids = [row.person_id for row in members]
    persons = {row.id: row for row in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    rows = db.find(Group, "ORDER BY name, id LIMIT %(most)s", most=_MOST)
    of_group: dict[str, list[Person]] = {row.id: [] for row in rows}
    for row in db.find(Membership, "WHERE person_id = ANY(%(ids)s) ORDER BY created_at", ids=ids):
        of_group.get(row.group_id, []).append(persons[row.person_id])
    return FramedPage(
        "settings/groups.html",
        groups=[(row, of_group[row.id], row.source == DIRECT) for row in rows],
        people=[persons[id_] for id_ in ids],
        refusal=str(refusal or ""),
    )


@page("/inbox/groups/new", "groups", "admin")
def new_group(_db: Db, _person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form of a group."""
    return FramedPage("settings/new_group.html", refusal=str(refusal or ""), form=request.form)


@action("/inbox/people/groups", "admin", section="groups", again=new_group)
def create_group(db: Db, person: PersonPrincipal) -> str:
    """Create a group."""
    Group.create(db, validated(GroupCreate, {"name": request.form.get("name", "")}).name, by=person)
    return "/inbox/groups"


@action("/inbox/people/groups/<group_id>", "admin", section="groups", again=groups)
def change_group(db: Db, person: PersonPrincipal, group_id: str) -> str:
    """Add a person to a group, take one out, or delete the group."""
    user_id = request.form.get("user_id", "")
    verbs: dict[str, Callable[[], Any]] = {
        "add": lambda: Group.add(db, group_id, user_id, by=person),
        "take_out": lambda: Group.take_out(db, group_id, user_id, by=person),
        "delete": lambda: Group.remove(db, group_id, by=person),
    }
    verb = verbs.get(request.form.get("do", ""))
    if verb is None:
        raise Invalid("do", "must be add, take_out or delete.")
    verb()
    return "/inbox/groups"
