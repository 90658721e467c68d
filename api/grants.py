"""Routes of grants: what people allowed beyond one call, until it ends or is revoked."""

import json
from collections.abc import Sequence

import sqlalchemy as sa
from flask import Blueprint

from api import wire
from api.answers import grants as answers
from api.answers.base import Page
from api.door import Json, reads, writes
from api.paging import Order, page
from api.requests.base import NoQuery, Nothing
from api.requests.grants import GrantList
from models import clock
from models.approval import Approval
from models.db import Db
from models.grant import Grant
from models.principal import Principal
from models.pure.masking import mask
from models.pure.policy import Rule
from models.ruling import Ruling
from models.session import Session
from models.toolset import listed
from models.workspace import Workspace

grants = Blueprint("grants", __name__, url_prefix="/v1/grants")

NEWEST: Order[Grant] = Order("grants", (Grant.created_at, Grant.id), lambda g: (g.created_at, g.id))
LOOKED_AT = 500
"""Waiting approvals that a preview looks at, the longest waiting first."""


@grants.get("")
@reads(GrantList, answer=Page[answers.Grant])
def index(db: Db, _principal: Principal, query: GrantList) -> Json:
    """List the workspace's grants, newest first."""
    wanted = sa.select(Grant)
    for column in ("session_id", "agent_id", "tool"):
        if (value := getattr(query, column)) is not None:
            wanted = wanted.where(getattr(Grant, column) == value)
    if query.live is not None:
        wanted = wanted.where(_LIVE if query.live else sa.not_(_LIVE))
    rows, after = page(db, wanted, NEWEST, query.limit, query.page)
    now = clock.now(db)
    return {"data": [wire.grant(row, now) for row in rows], "next_page": after}


@grants.get("/<grant_id>")
@reads(NoQuery, answer=answers.Grant)
def show(db: Db, _principal: Principal, _query: NoQuery, grant_id: str) -> Json:
    """Get a grant: the calls that it covers, who gave it, and how often it was used."""
    return wire.grant(Grant.find(db, grant_id), clock.now(db))


@grants.delete("/<grant_id>")
@writes(Nothing, "approvals", once=True, answer=answers.GrantRevoked)
def revoke(db: Db, principal: Principal, _body: Nothing, grant_id: str) -> Json:
    """Revoke a grant.

    Idempotent. Calls that the grant has allowed and that have not started are no longer allowed either.
    """
    Grant.find(db, grant_id).revoke(db, principal)
    return {"id": grant_id, "type": "grant_revoked"}


def given(db: Db, approvals: Sequence[Approval]) -> dict[str, Json]:
    """The grants that these approvals' decisions gave, by approval."""
    giving = {row.id: row for row in approvals if (row.decision or {}).get("scope")}
    if not giving:
        return {}
    # A grant is as old as its decision, and by its age it is found without an index of its own.
    moments = {row.decided_at for row in giving.values()}
    workspaces = {row.workspace_id for row in giving.values()}
    of_them = (Grant.workspace_id.in_(workspaces), Grant.created_at.in_(moments), Grant.approval_id.in_(giving))
    now = clock.now(db)
    return {row.approval_id: wire.grant(row, now) for row in db.scalars(sa.select(Grant).where(*of_them))}


def would_release(db: Db, approval: Approval, rule: Rule, scope: str) -> int:
    """How many other calls wait that a grant of this `rule` would allow, if it were given with the approval's decision.

    Their inputs are held against the rule with their secrets masked: patterns of one's own choice could find these out. A rule
    about one exact input is held against the real ones, whose hashes are no secrets.
    """
    session = db.get_one(Session, approval.session_id)
    reach = Approval.session_id == session.id if scope == "session" else Approval.agent_id == session.agent_id
    waiting = (
        sa.select(Approval.input, Approval.input_schema, Session)
        .join(Session, Session.id == Approval.session_id)
        .where(reach, Approval.tool == approval.tool, Approval.id != approval.id)
        .where(Approval.status == "pending", Approval.kind == "tool_call", Approval.expires_at > clock.DB_NOW)
        .order_by(Approval.created_at)
        .limit(LOOKED_AT)
    )
    policies = Workspace.policies(db)
    behind = listed(db, session.agent)
    identity = Ruling.of(session.agent, policies, behind).identity(approval.tool, self_hosted=session.self_hosted)
    released = 0
    for spelled, schema, other in db.execute(waiting):
        given = json.loads(spelled)
        if rule.match.input_sha256 is None:
            given = mask(given, schema).shown
        rules = Ruling.of(other.agent, policies, listed(db, other.agent)).in_session(git_written=other.git_written)
        if rules.identity(approval.tool, self_hosted=other.self_hosted) == identity:
            released += rules.verdict(approval.tool, given, [rule]).effect == "allow"
    return released


_LIVE = sa.and_(
    Grant.revoked_at.is_(None),
    sa.or_(Grant.expires_at.is_(None), Grant.expires_at > clock.DB_NOW),
    sa.or_(Grant.max_uses.is_(None), Grant.uses < Grant.max_uses),
)
