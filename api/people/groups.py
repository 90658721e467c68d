"""Routes of groups and their members: the SDK's `beta.organization.rbac_groups`."""

from flask import Blueprint

from api.answers import people as answers
from api.answers.base import Page
from api.door import Json, reads, writes
from api.paging import Order, Wanted, page
from api.requests.base import NoQuery, Nothing
from api.requests.people import CursorPage, GroupCreate, GroupUpdate, MemberAdd
from api.wire import time
from models.audit.principal import Principal
from models.database.rows import Db
from models.people.group import Group, Membership
from models.people.member import DIRECT
from models.people.person import Person

groups = Blueprint("groups", __name__, url_prefix="/v1/organizations/rbac_groups")

NEWEST: Order[Group] = Order("rbac_groups", (Group.id,), lambda row: (row.id,))
LAST_ADDED: Order[Membership] = Order(
    "rbac_group_members", (Membership.created_at, Membership.person_id), lambda row: (row.created_at, row.person_id)
)


@groups.get("")
@reads(CursorPage, "admin", answer=Page[answers.Group])
def index(db: Db, _principal: Principal, query: CursorPage) -> Json:
    """List the workspace's groups, newest first."""
    rows, after = page(db, Wanted(Group), NEWEST, query.limit, query.page)
    return {"data": [_wire(row) for row in rows], "next_page": after}


@groups.get("/<rbac_group_id>")
@reads(NoQuery, "admin", answer=answers.Group)
def show(db: Db, _principal: Principal, _query: NoQuery, rbac_group_id: str) -> Json:
    """Get a group."""
    return _wire(Group.find(db, rbac_group_id))


@groups.post("")
@writes(GroupCreate, "admin", answer=answers.Group)
def create(db: Db, principal: Principal, body: GroupCreate) -> Json:
    """Create a group of people of the workspace."""
    return _wire(Group.create(db, body.name, by=principal))


@groups.post("/<rbac_group_id>")
@writes(GroupUpdate, "admin", once=True, answer=answers.Group)
def update(db: Db, principal: Principal, body: GroupUpdate, rbac_group_id: str) -> Json:
    """Rename a group.

    Its id, which approvals name, stays.
    """
    if body.name is None:
        return _wire(Group.find(db, rbac_group_id))
    return _wire(Group.rename(db, rbac_group_id, body.name, by=principal))


@groups.delete("/<rbac_group_id>")
@writes(Nothing, "admin", once=True, answer=answers.GroupDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, rbac_group_id: str) -> Json:
    """Delete a group.

    Approvals that name it have no approvers in it any more.
    """
    Group.remove(db, rbac_group_id, by=principal)
    return {"id": rbac_group_id, "type": "rbac_group_deleted"}


@groups.get("/<rbac_group_id>/members")
@reads(CursorPage, "admin", answer=Page[answers.GroupMember])
def members(db: Db, _principal: Principal, query: CursorPage, rbac_group_id: str) -> Json:
    """List the people in a group, the last added first."""
    Group.find(db, rbac_group_id)
    matching = Wanted(Membership).equal(group_id=rbac_group_id)
    rows, after = page(db, matching, LAST_ADDED, query.limit, query.page)
    ids = [row.person_id for row in rows]
    emails = {person.id: person.email for person in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    return {"data": [_member(row, emails[row.person_id]) for row in rows], "next_page": after}


@groups.post("/<rbac_group_id>/members")
@writes(MemberAdd, "admin", once=True, answer=answers.GroupMember)
def add(db: Db, principal: Principal, body: MemberAdd, rbac_group_id: str) -> Json:
    """Add a person of the workspace to a group."""
    row = Group.add(db, rbac_group_id, body.user_id, by=principal)
    return _member(row, db.get_one(Person, body.user_id).email)


@groups.delete("/<rbac_group_id>/members/<user_id>")
@writes(Nothing, "admin", once=True, answer=answers.GroupMemberDeleted)
def take_out(db: Db, principal: Principal, _body: Nothing, rbac_group_id: str, user_id: str) -> Json:
    """Take a person out of a group."""
    Group.take_out(db, rbac_group_id, user_id, by=principal)
    return {"type": "rbac_group_member_deleted", "rbac_group_id": rbac_group_id, "user_id": user_id}


def _wire(row: Group) -> Json:
    return {
        "id": row.id,
        "type": "rbac_group",
        "name": row.name,
        "role_ids": [],
        "source_type": "direct" if row.source == DIRECT else "scim",
        "source": row.source,
        "created_at": time(row.created_at),
        "updated_at": time(row.updated_at),
    }


def _member(row: Membership, email: str) -> Json:
    return {
        "type": "rbac_group_member",
        "rbac_group_id": row.group_id,
        "user_id": row.person_id,
        "email": email,
        "created_at": time(row.created_at),
    }
