"""Routes of invitations: the SDK's `beta.organization.invites`. The new one-time link is in the first response only."""

from flask import Blueprint

from api.door.paging import Selection, id_page
from api.door.requests import NoQuery, Nothing
from api.door.routes import reads, writes
from api.v1.people import responses
from api.v1.people.requests import InviteCreate, InviteList
from api.v1.people.rights import check_invitation
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.errors import NotFound
from models.people.invitation import Invitation, Invitee, link_of
from models.people.person import normalized

invites = Blueprint("invites", __name__, url_prefix="/v1/organizations/invites")

_OPEN = f"expires_at > {clock.STARTED}"
_STATUS = {
    "accepted": "accepted_at IS NOT NULL",
    "expired": f"accepted_at IS NULL AND NOT {_OPEN}",
    "pending": f"accepted_at IS NULL AND {_OPEN}",
}
"""The conditions of each value of `Invitation.status`, for invitations that were not withdrawn."""


@invites.get("")
@reads(InviteList, "admin", response=responses.InvitePage)
def index(db: Db, _principal: Principal, query: InviteList) -> responses.InvitePage:
    """List the workspace's invitations, newest first."""
    matching = Selection(Invitation).where("NOT renews").where("deleted_at IS NULL")
    if query.email:
        matching = matching.equal(email=normalized(query.email))
    if query.statuses:
        matching = matching.where("(" + " OR ".join(f"({_STATUS[status]})" for status in query.statuses) + ")")
    if query.workspace_roles is not None:
        matching = matching.where("role = ANY(%(roles)s)", roles=query.workspace_roles)
    rows, has_more = id_page(db, matching, query)
    now = clock.now(db)
    return responses.InvitePage.of([responses.Invite.of(row, now) for row in rows], has_more=has_more)


@invites.get("/<invite_id>")
@reads(NoQuery, "admin", response=responses.Invite)
def show(db: Db, _principal: Principal, _query: NoQuery, invite_id: str) -> responses.Invite:
    """Get an invitation, without its link."""
    return responses.Invite.of(_find(db, invite_id), clock.now(db))


@invites.post("")
@writes(InviteCreate, "admin", response=responses.NewInvite, shown_once="url")
def create(db: Db, principal: Principal, body: InviteCreate) -> responses.NewInvite:
    """Invite a person to the workspace.

    The one-time link is in this response only, since Assent sends no mail. The principal needs each scope that the role gives. An
    earlier invitation to the same address ends.
    """
    check_invitation(db, principal, body.given_role)
    row, secret = Invitation.create(db, Invitee(body.email, body.given_role, group_ids=body.rbac_group_ids), by=principal)
    return responses.NewInvite.of(row, clock.now(db), url=link_of(secret))


@invites.delete("/<invite_id>")
@writes(Nothing, "admin", once=True, response=responses.InviteDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, invite_id: str) -> responses.InviteDeleted:
    """Withdraw an invitation that nobody has accepted."""
    _find(db, invite_id)
    Invitation.withdraw(db, invite_id, by=principal)
    return responses.InviteDeleted(id=invite_id, type="invite_deleted")


def _find(db: Db, invite_id: str) -> Invitation:
    row = Invitation.find(db, invite_id)
    if row.renews:
        raise NotFound("invite", invite_id)
    return row
