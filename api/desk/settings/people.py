"""People, for admins: invitations, roles, deactivation, erasure, and new links."""

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.door.requests import Erase
from api.v1.people.requests import InviteCreate, UserUpdate
from api.v1.people.rights import check_role
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid, NotFound, Refusal
from models.operate.personal_data.person import erase
from models.people.confirming import confirm, makers_of
from models.people.group import Group, Membership
from models.people.invitation import Invitation, Invitee, link_of
from models.people.member import DIRECT, Member
from models.people.names import Names
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.people.roles import ROLES, Role
from models.people.sign_in import SignIn

_MOST = 500
"""People, and groups, that a page shows."""
ROLE_SENTENCES: dict[Role, str] = {
    "admin": "Manages people, keys, policies and the audit, and does everything below.",
    "developer": "Sees all sessions, runs agents and sends messages. Does not decide.",
    "approver": "Sees and decides what is theirs.",
    "viewer": "Sees everything, changes nothing.",
}
"""What each role may do."""
_OPEN_INVITATIONS = """
    WHERE NOT renews AND deleted_at IS NULL AND accepted_at IS NULL AND NOT EXISTS (
        SELECT FROM person p JOIN member m ON m.person_id = p.id WHERE p.email = invitation.email AND deactivated_at IS NULL
    )
    ORDER BY id DESC LIMIT %(most)s
"""
"""Invitations that nobody has accepted, without links for members."""


@page("/inbox/people", "people", "admin")
def people(
    db: Db, person: PersonPrincipal, refusal: Refusal | None = None, url: str = "", whose: str = "", **_path_ids: str
) -> FramedPage:
    """Show the people of the workspace. `url` is a new one-time link, which is shown once, `whose` its person."""
    now = clock.now(db)
    members = db.find(Member, "WHERE deactivated_at IS NULL ORDER BY person_id DESC LIMIT %(most)s", most=_MOST)
    ids = [row.person_id for row in members]
    persons = {row.id: row for row in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    makers = makers_of(db, ids)
    names = Names.of(db, {f"user:{maker}" for some in makers.values() for maker in some})
    return FramedPage(
        "settings/people.html",
        members=[(row, persons[row.person_id]) for row in members],
        invitations=[(row, row.status(now)) for row in db.find(Invitation, _OPEN_INVITATIONS, most=_MOST)],
        groups_of=groups_of(db, ids),
        roles=ROLES,
        makers={id_: [names[f"user:{maker}"] for maker in some] for id_, some in makers.items()},
        me=person.person_id,
        url=url,
        whose=whose,
        refusal=str(refusal or ""),
    )


@page("/inbox/people/new", "people", "admin")
def new_person(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form of an invitation."""
    groups = db.find(Group, "WHERE source = %(direct)s ORDER BY name, id LIMIT %(most)s", direct=DIRECT, most=_MOST)
    values = {"roles": [(role, ROLE_SENTENCES[role]) for role in ROLES], "groups": groups, "form": request.form}
    return FramedPage("settings/new_person.html", refusal=str(refusal or ""), **values)


def groups_of(db: Db, person_ids: list[str]) -> dict[str, list[str]]:
    """Return the names of the groups of each person."""
    names: dict[str, str] = dict(db.rows("SELECT id, name FROM person_group LIMIT %(most)s", most=_MOST))
    result: dict[str, list[str]] = {}
    for row in db.find(Membership, "WHERE person_id = ANY(%(ids)s) ORDER BY created_at", ids=person_ids):
        if row.group_id in names:
            result.setdefault(row.person_id, []).append(names[row.group_id])
    return result


@action("/inbox/people/invite", "admin", section="people", again=new_person)
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
    check_role(person, Member.find(db, user_id).role)
    match request.form.get("do"):
        case "role":
            role = validated(UserUpdate, {"workspace_role": request.form.get("role")}).workspace_role
            if role is None:
                raise Invalid("role", "must be chosen.")
            check_role(person, role)
            Member.change_role(db, user_id, role, by=person)
        case "sign_out":
            Member.find(db, user_id, lock=True)
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


@page("/inbox/people/<user_id>/erase", "people", "admin")
def confirm_erasure(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None, user_id: str = "") -> FramedPage:
    """Show what the erasure of a person does, and its form. Raises NotFound."""
    row = db.get(Person, user_id)
    if row is None or row.erased_at is not None:
        raise NotFound("user", user_id)
    return FramedPage("settings/erase_person.html", row=row, form=request.form, refusal=str(refusal or ""))


@action("/inbox/people/<user_id>/erase", "admin", section="people", again=confirm_erasure)
def erase_person(db: Db, person: PersonPrincipal, user_id: str) -> str:
    """Erase a person. The form has a reason, and says that the admin is sure."""
    reason = validated(Erase, {"reason": request.form.get("reason", "")}).reason
    if request.form.get("sure") != "yes":
        raise Invalid("", "Tick the box: an erasure cannot be undone.")
    erase(db, user_id, reason, by=person)
    return "/inbox/people"
