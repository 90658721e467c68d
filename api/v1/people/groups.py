"""Routes of groups and their members: the SDK's `beta.organization.rbac_groups`."""

from flask import Blueprint

from api.door.paging import Order, Selection, listed, page
from api.door.requests import NoQuery, Nothing
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.people import responses as answers
from api.v1.people.requests import CursorPage, GroupCreate, GroupUpdate, MemberAdd
from models.audit.principal import Principal
from models.database.rows import Db
from models.people.group import Group, Membership
from models.people.person import Person

groups = Blueprint("groups", __name__, url_prefix="/v1/organizations/rbac_groups")

NEWEST: Order[Group] = Order("rbac_groups", (Group.id,))
LAST_ADDED: Order[Membership] = Order("rbac_group_members", (Membership.created_at, Membership.person_id))


@groups.get("")
@reads(CursorPage, "admin", answer=Page[answers.Group])
def index(db: Db, _principal: Principal, query: CursorPage) -> Page[answers.Group]:
    """List the workspace's groups, newest first."""
    return listed(db, Selection(Group), NEWEST, query, answers.Group.of)


@groups.get("/<rbac_group_id>")
@reads(NoQuery, "admin", answer=answers.Group)
def show(db: Db, _principal: Principal, _query: NoQuery, rbac_group_id: str) -> answers.Group:
    """Get a group."""
    return answers.Group.of(Group.find(db, rbac_group_id))


@groups.post("")
@writes(GroupCreate, "admin", answer=answers.Group)
def create(db: Db, principal: Principal, body: GroupCreate) -> answers.Group:
    """Create a group of people of the workspace."""
    return answers.Group.of(Group.create(db, body.name, by=principal))


@groups.post("/<rbac_group_id>")
@writes(GroupUpdate, "admin", once=True, answer=answers.Group)
def update(db: Db, principal: Principal, body: GroupUpdate, rbac_group_id: str) -> answers.Group:
    """Rename a group.

    The group keeps its id, which approvals name.
    """
    if body.name is None:
        return answers.Group.of(Group.find(db, rbac_group_id))
    return answers.Group.of(Group.rename(db, rbac_group_id, body.name, by=principal))


@groups.delete("/<rbac_group_id>")
@writes(Nothing, "admin", once=True, answer=answers.GroupDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, rbac_group_id: str) -> answers.GroupDeleted:
    """Delete a group.

    Approvals that name the group have no approvers from the group any more.
    """
    Group.remove(db, rbac_group_id, by=principal)
    return answers.GroupDeleted(id=rbac_group_id, type="rbac_group_deleted")


@groups.get("/<rbac_group_id>/members")
@reads(CursorPage, "admin", answer=Page[answers.GroupMember])
def members(db: Db, _principal: Principal, query: CursorPage, rbac_group_id: str) -> Page[answers.GroupMember]:
    """List the people in a group, the last added first."""
    Group.find(db, rbac_group_id)
    matching = Selection(Membership).equal(group_id=rbac_group_id)
    rows, after = page(db, matching, LAST_ADDED, query.limit, query.page)
    ids = [row.person_id for row in rows]
    emails = {person.id: person.email for person in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    return Page[answers.GroupMember](data=[answers.GroupMember.of(row, emails[row.person_id]) for row in rows], next_page=after)


@groups.post("/<rbac_group_id>/members")
@writes(MemberAdd, "admin", once=True, answer=answers.GroupMember)
def add(db: Db, principal: Principal, body: MemberAdd, rbac_group_id: str) -> answers.GroupMember:
    """Add a person of the workspace to a group."""
    row = Group.add(db, rbac_group_id, body.user_id, by=principal)
    return answers.GroupMember.of(row, db.get_one(Person, body.user_id).email)


@groups.delete("/<rbac_group_id>/members/<user_id>")
@writes(Nothing, "admin", once=True, answer=answers.GroupMemberDeleted)
def take_out(db: Db, principal: Principal, _body: Nothing, rbac_group_id: str, user_id: str) -> answers.GroupMemberDeleted:
    """Take a person out of a group."""
    Group.take_out(db, rbac_group_id, user_id, by=principal)
    return answers.GroupMemberDeleted(type="rbac_group_member_deleted", rbac_group_id=rbac_group_id, user_id=user_id)
