"""People and groups, for admins: invitations, roles, deactivation, new links, and memberships."""

from collections.abc import Callable
from typing import Any

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.people.requests import GroupCreate, InviteCreate, UserUpdate
from api.v1.people.rights import check_role
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid, Refusal
from models.people.confirming import confirm, makers_of
from models.people.group import Group, Membership
from models.people.invitation import Invitation, Invitee, link_of
from models.people.member import DIRECT, Member
from models.people.names import Names
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.people.roles import ROLES
from models.people.sign_in import SignIn

_MOST = 500
"""People, and groups, that the page shows."""


@page("/inbox/people", "people", "admin")
def people(
    db: Db, person: PersonPrincipal, refusal: Refusal | None = None, url: str = "", whose: str = "", **_path_ids: str
) -> FramedPage:
    """Show the people and groups of the workspace. `url` is a new one-time link, which is shown once, `whose` its person."""
    now = clock.now(db)
    members = db.find(Member, "WHERE deactivated_at IS NULL ORDER BY person_id DESC LIMIT %(most)s", most=_MOST)
    ids = [row.person_id for row in members]
    persons = {row.id: row for row in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    groups = db.find(Group, "ORDER BY name, id LIMIT %(most)s", most=_MOST)
    of_group: dict[str, list[Person]] = {row.id: [] for row in groups}
    for row in db.find(Membership, "WHERE person_id = ANY(%(ids)s) ORDER BY created_at", ids=ids):
        of_group.get(row.group_id, []).append(persons[row.person_id])
    makers = makers_of(db, ids)
    names = Names.of(db, {f"user:{maker}" for some in makers.values() for maker in some})
    open_ = "WHERE NOT renews AND deleted_at IS NULL AND accepted_at IS NULL ORDER BY id DESC LIMIT %(most)s"
    return FramedPage(
        "settings/people.html",
        members=[(row, persons[row.person_id]) for row in members],
        invitations=[(row, row.status(now)) for row in db.find(Invitation, open_, most=_MOST)],
        groups=[(row, of_group[row.id], row.source == DIRECT) for row in groups],
        roles=ROLES,
        makers={id_: [names[f"user:{maker}"] for maker in some] for id_, some in makers.items()},
        me=person.person_id,
        url=url,
        whose=whose,
        refusal=str(refusal or ""),
        form=request.form,
    )


@action("/inbox/people/invite", "admin", section="people", again=people)
def invite(db: Db, person: PersonPrincipal) -> FramedPage:
    """Invite a person. The one-time link is on this page only."""
    body = validated(InviteCreate, {"email": request.form.get("email", ""), "workspace_role": request.form.get("role")})
    check_role(person, body.given_role)
    row, secret = Invitation.create(db, Invitee(body.email, body.given_role, group_ids=request.form.getlist("groups")), by=person)
    return people(db, person, url=link_of(secret), whose=row.email)


@action("/inbox/people/invitations/<invite_id>/withdraw", "admin", section="people", again=people)
def withdraw(db: Db, person: PersonPrincipal, invite_id: str) -> str:
    """Withdraw an invitation that nobody has accepted."""
    Invitation.withdraw(db, invite_id, by=person)
    return "/inbox/people"


@action("/inbox/people/<user_id>", "admin", section="people", again=people)
def change_person(db: Db, person: PersonPrincipal, user_id: str) -> FramedPage | str:
    """Change a role, sign a person out, give a new link, confirm or deactivate the person."""
    member = Member.find(db, user_id, lock=True)
    check_role(person, member.role)
    match request.form.get("do"):
        case "role":
            role = validated(UserUpdate, {"workspace_role": request.form.get("role")}).workspace_role
            assert role, "the form has a role"
            check_role(person, role)
            Member.change_role(db, user_id, role, by=person)
        case "sign_out":
            SignIn.end_all(db, user_id, by=person)
        case "link":
            _row, secret = Invitation.renew(db, user_id, by=person)
            return people(db, person, url=link_of(secret), whose=db.get_one(Person, user_id).name)
        case "confirm":
            confirm(db, user_id, by=person)
        case "deactivate":
            Member.deactivate(db, user_id, by=person)
        case _:
            raise Invalid("do", "must be role, sign_out, link, confirm or deactivate.")
    return "/inbox/people"


@action("/inbox/people/groups", "admin", section="people", again=people)
def create_group(db: Db, person: PersonPrincipal) -> str:
    """Create a group."""
    Group.create(db, validated(GroupCreate, {"name": request.form.get("name", "")}).name, by=person)
    return "/inbox/people#groups"


@action("/inbox/people/groups/<group_id>", "admin", section="people", again=people)
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
    return "/inbox/people#groups"
