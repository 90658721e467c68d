"""Routes of people: the SDK's `beta.organization.users`, sign-out, and a new link for a person who cannot sign in any more."""

from collections.abc import Sequence

from flask import Blueprint

from api.door.paging import Selection, id_page
from api.door.requests import NoQuery, Nothing
from api.door.routes import reads, writes
from api.v1.people import responses
from api.v1.people.requests import UserList, UserUpdate
from api.v1.people.rights import check_invitation, check_role
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid
from models.people.confirming import confirm, makers_of
from models.people.group import Membership
from models.people.invitation import Invitation, link_of
from models.people.member import Member
from models.people.person import Person, normalized
from models.people.roles import Role
from models.people.sign_in import SignIn

users = Blueprint("users", __name__, url_prefix="/v1/organizations/users")


@users.get("")
@reads(UserList, "admin", response=responses.UserPage)
def index(db: Db, _principal: Principal, query: UserList) -> responses.UserPage:
    """List the people of the workspace, the last added first."""
    matching = Selection(Member)
    if query.include_deactivated:
        matching = matching.where("NOT EXISTS (SELECT FROM person WHERE id = person_id AND erased_at IS NOT NULL)")
    else:
        matching = matching.where("deactivated_at IS NULL")
    if query.email:
        matching = matching.where("person_id = (SELECT id FROM person WHERE email = %(email)s)", email=normalized(query.email))
    if query.workspace_roles is not None:
        matching = matching.where("role = ANY(%(roles)s)", roles=query.workspace_roles)
    rows, has_more = id_page(db, matching, query, "person_id")
    return responses.UserPage.of(_users(db, rows), has_more=has_more)


@users.get("/<user_id>")
@reads(NoQuery, "admin", response=responses.User)
def show(db: Db, _principal: Principal, _query: NoQuery, user_id: str) -> responses.User:
    """Get a person of the workspace."""
    return _users(db, [Member.find(db, user_id)])[0]


@users.post("/<user_id>")
@writes(UserUpdate, "admin", once=True, response=responses.User)
def update(db: Db, principal: Principal, body: UserUpdate, user_id: str) -> responses.User:
    """Change a person's role.

    The new role applies from the person's next request on. The last admin stays one: a 409.
    """
    member = Member.find(db, user_id)
    role = body.workspace_role or _workspace_role(body, member)
    check_role(principal, role)
    check_role(principal, member.role)
    return _users(db, [Member.change_role(db, user_id, role, by=principal)])[0]


@users.delete("/<user_id>")
@writes(Nothing, "admin", once=True, response=responses.UserDeleted)
def remove(db: Db, principal: Principal, _body: Nothing, user_id: str) -> responses.UserDeleted:
    """Deactivate a person in the workspace.

    The person's sign-ins, passkeys, password, Slack users and delegations end at once. The person's decisions stay. The last admin
    cannot be deactivated: a 409.
    """
    Member.deactivate(db, user_id, by=principal)
    return responses.UserDeleted(id=user_id, type="user_deleted")


@users.post("/<user_id>/sign_out")
@writes(Nothing, "admin", once=True, response=responses.User)
def sign_out(db: Db, principal: Principal, _body: Nothing, user_id: str) -> responses.User:
    """Sign a person out of the workspace everywhere.

    The person may sign in again.
    """
    member = Member.find(db, user_id, lock=True)
    SignIn.end_all(db, user_id, by=principal)
    return _users(db, [member])[0]


@users.post("/<user_id>/confirm")
@writes(Nothing, "admin", once=True, response=responses.User)
def confirm_person(db: Db, principal: Principal, _body: Nothing, user_id: str) -> responses.User:
    """Confirm that a person holds their own ways to sign in.

    Until then, a person who signed in by a link does not count beside the maker of the link. The maker cannot confirm, and neither
    can an API key.
    """
    check_role(principal, Member.find(db, user_id).role)
    confirm(db, user_id, by=principal)
    return _users(db, [Member.find(db, user_id)])[0]


@users.post("/<user_id>/link")
@writes(Nothing, "admin", response=responses.NewInvite, shown_once="url")
def renew(db: Db, principal: Principal, _body: Nothing, user_id: str) -> responses.NewInvite:
    """Give a person a new one-time link, for example after the loss of a passkey.

    Using the link ends the person's passkeys, password, Slack users and sign-ins. Earlier links end now.
    """
    check_invitation(db, principal, Member.find(db, user_id).role)
    row, secret = Invitation.renew(db, user_id, by=principal)
    return responses.NewInvite.of(row, clock.now(db), url=link_of(secret))


def _workspace_role(body: UserUpdate, member: Member) -> Role:
    """Return the workspace's role that the SDK's `role` stands for. Raises Invalid."""
    if body.role is None:
        raise Invalid("role", "is missing; send role or workspace_role.")
    if body.role == "user":
        return "viewer" if member.role == "viewer" else "approver"
    return body.role


def _users(db: Db, rows: Sequence[Member]) -> list[responses.User]:
    ids = [row.person_id for row in rows]
    persons = {person.id: person for person in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    groups: dict[str, list[str]] = {}
    for membership in db.find(Membership, "WHERE person_id = ANY(%(ids)s) ORDER BY group_id", ids=ids):
        groups.setdefault(membership.person_id, []).append(membership.group_id)
    makers = makers_of(db, ids)
    return [
        responses.User.of(row, persons[row.person_id], groups.get(row.person_id, []), makers.get(row.person_id, [])) for row in rows
    ]
