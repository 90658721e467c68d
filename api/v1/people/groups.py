"""Routes of groups and their members: the SDK's `beta.organization.rbac_groups`."""

from flask import Blueprint

from api.door.paging import Order, Selection, listed, page
from api.door.requests import NoQuery, Nothing
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.people import responses
from api.v1.people.requests import CursorPage, GroupCreate, GroupUpdate, MemberAdd
from models.audit.principal import Principal
from models.database.rows import Db
from models.people.group import Group, Membership
from models.people.person import Person

groups = Blueprint("groups", __name__, url_prefix="/v1/organizations/rbac_groups")

NEWEST: Order[Group] = Order("rbac_groups", (Group.id,))
LAST_ADDED: Order[Membership] = Order("rbac_group_members", (Membership.created_at, Membership.person_id))


@groups.get("")
@reads(CursorPage, "admin", response=Page[responses.Group])
def index(db: Db, _principal: Principal, query: CursorPage) -> Page[responses.Group]:
    """List the workspace's groups, newest first."""
    return listed(db, Selection(Group), NEWEST, query, responses.Group.of)


@groups.get("/<rbac_group_id>")
@reads(NoQuery, "admin", response=responses.Group)
def show(db: Db, _principal: Principal, _query: NoQuery, rbac_group_id: str) -> responses.Group:
    """Get a group."""
    return responses.Group.of(Group.find(db, rbac_group_id))


@groups.post("")
@writes(GroupCreate, "admin", response=responses.Group)
def create(db: Db, principal: Principal, body: GroupCreate) -> responses.Group:
    """Create a group of people of the workspace."""
    return responses.Group.of(Group.create(db, body.name, by=principal))


@groups.post("/<rbac_group_id>")
@writes(GroupUpdate, "admin", once=True, response=responses.Group)
def update(db: Db, principal: Principal, body: GroupUpdate, rbac_group_id: str) -> responses.Group:
    """Rename a group.

    The group keeps its id, which approvals name.
    """
    if body.name is None:
        return responses.Group.of(Group.find(db, rbac_group_id))
    return responses.Group.of(Group.rename(db, rbac_group_id, body.name, by=principal))


@groups.delete("/<rbac_group_id>")
@writes(Nothing, "admin", once=True, response=responses.GroupDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, rbac_group_id: str) -> responses.GroupDeleted:
    """Delete a group.

    Approvals that name the group have no approvers from the group any more.
    """
    Group.remove(db, rbac_group_id, by=principal)
    return responses.GroupDeleted(id=rbac_group_id, type="rbac_group_deleted")


@groups.get("/<rbac_group_id>/members")
@reads(CursorPage, "admin", response=Page[responses.GroupMember])
def members(db: Db, _principal: Principal, query: CursorPage, rbac_group_id: str) -> Page[responses.GroupMember]:
    """List the people in a group, the last added first."""
    Group.find(db, rbac_group_id)
    matching = Selection(Membership).equal(group_id=rbac_group_id)
    rows, after = page(db, matching, LAST_ADDED, query.limit, query.page)
    ids = [row.person_id for row in rows]
    emails = {person.id: person.email for person in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    return Page[responses.GroupMember](data=[responses.GroupMember.of(row, emails[row.person_id]) for row in rows], next_page=after)


@groups.post("/<rbac_group_id>/members")
@writes(MemberAdd, "admin", once=True, response=responses.GroupMember)
def add(db: Db, principal: Principal, body: MemberAdd, rbac_group_id: str) -> responses.GroupMember:
    """Add a person of the workspace to a group."""
    row = Group.add(db, rbac_group_id, body.user_id, by=principal)
    return responses.GroupMember.of(row, db.get_one(Person, body.user_id).email)


@groups.delete("/<rbac_group_id>/members/<user_id>")
@writes(Nothing, "admin", once=True, response=responses.GroupMemberDeleted)
def take_out(db: Db, principal: Principal, _body: Nothing, rbac_group_id: str, user_id: str) -> responses.GroupMemberDeleted:
    """Take a person out of a group."""
    Group.take_out(db, rbac_group_id, user_id, by=principal)
    return responses.GroupMemberDeleted(type="rbac_group_member_deleted", rbac_group_id=rbac_group_id, user_id=user_id)
