"""Routes of grants, the standing approvals."""

import json
from collections.abc import Sequence

from flask import Blueprint

from api.door.paging import Order, Selection, page
from api.door.requests import NoQuery, Nothing
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.grants import responses
from api.v1.grants.requests import GrantList
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.policy.session_policies import SessionPolicies
from models.pure.policy import Granted, Rule
from models.session.approval.deadline import OVERDUE
from models.session.approval.grant import Grant, is_exact, live_sql
from models.session.approval.offers import offers_of
from models.session.approval.row import Approval
from models.session.row import Session
from models.workspace.row import Workspace
from models.workspace.toolset import listings_of

grants = Blueprint("grants", __name__, url_prefix="/v1/grants")

NEWEST: Order[Grant] = Order("grants", (Grant.created_at, Grant.id))
MAX_PREVIEWED = 500
"""Most pending approvals that a preview considers, oldest first."""
LIVE = live_sql(clock.STARTED)


@grants.get("")
@reads(GrantList, response=Page[responses.Grant])
def index(db: Db, _principal: Principal, query: GrantList) -> Page[responses.Grant]:
    """List the workspace's grants, newest first."""
    selection = Selection(Grant).equal(session_id=query.session_id, agent_id=query.agent_id, tool=query.tool)
    if query.live is not None:
        selection = selection.where(LIVE if query.live else f"NOT {LIVE}")
    rows, after = page(db, selection, NEWEST, query.limit, query.page)
    return Page[responses.Grant](data=answered(db, rows), next_page=after)


@grants.get("/<grant_id>")
@reads(NoQuery, response=responses.Grant)
def show(db: Db, _principal: Principal, _query: NoQuery, grant_id: str) -> responses.Grant:
    """Get a grant: the calls that it covers, the person who gave it, and the number of its uses."""
    return answered(db, [Grant.find(db, grant_id)])[0]


@grants.delete("/<grant_id>")
@writes(Nothing, "approvals", once=True, response=responses.GrantRevoked)
def revoke(db: Db, principal: Principal, _body: Nothing, grant_id: str) -> responses.GrantRevoked:
    """Revoke a grant.

    Idempotent. Calls that the grant has allowed and that have not started are no longer allowed.
    """
    Grant.find(db, grant_id).revoke(db, principal)
    return responses.GrantRevoked(id=grant_id, type="grant_revoked")


def answered(db: Db, rows: Sequence[Grant]) -> list[responses.Grant]:
    """Return the responses for grants."""
    now, offers = clock.now(db), offers_of(db, rows)
    return [responses.Grant.of(row, now, offers[row.id]) for row in rows]


def grants_by_approval(db: Db, approvals: Sequence[Approval]) -> dict[str, responses.Grant]:
    """Return the grants that these approvals' decisions created, by the approval's id."""
    creators = [row for row in approvals if (row.decision or {}).get("scope")]
    if not creators:
        return {}
    # A grant has its decision's time, which an existing index covers.
    rows = db.find(
        Grant,
        "WHERE workspace_id = ANY(%(workspaces)s) AND created_at = ANY(%(moments)s) AND approval_id = ANY(%(approvals)s)",
        workspaces=list({row.workspace_id for row in creators}),
        moments=list({row.decided_at for row in creators}),
        approvals=[row.id for row in creators],
    )
    return {row.approval_id: answer for row, answer in zip(rows, answered(db, rows), strict=True)}


def would_release(db: Db, approval: Approval, rule: Rule, scope: str) -> int:
    """Return the number of other waiting calls that a grant with this `rule` would allow, where their tool offers such a grant.

    The rule is matched against inputs with masked secrets, since the caller could otherwise guess secrets by patterns. A rule about
    one exact input is matched against the real inputs, since hashes are not secrets.
    """
    session = db.get_one(Session, approval.session_id)
    reach = {"session_id": session.id} if scope == "session" else {"agent_id": session.agent_id}
    waiting = Selection(Approval).equal(**reach, tool=approval.tool, status="pending", kind="tool_call")
    waiting = waiting.where(f"id <> %(id)s AND NOT {OVERDUE}", id=approval.id)
    others = waiting.select(db, "ORDER BY created_at LIMIT %(limit)s", limit=MAX_PREVIEWED)
    sessions = {row.id: row for row in db.find(Session, "WHERE id = ANY(%(ids)s)", ids=list({row.session_id for row in others}))}
    policies = Workspace.policies(db)
    agent = session.agent(db)
    identity = SessionPolicies.of(agent, policies, listings_of(db, agent)).identity(approval.tool, self_hosted=session.self_hosted)
    released = 0
    for other_approval in others:
        other = sessions[other_approval.session_id]
        arguments = json.loads(other_approval.input) if rule.match.input_sha256 else other_approval.masked.arguments
        agent = other.agent(db)
        rules = SessionPolicies.of(agent, policies, listings_of(db, agent)).in_session(git_written=other.git_written)
        is_offered = rules.quorum(approval.tool).offer.gives(scope, exact=is_exact(rule))
        if is_offered and rules.identity(approval.tool, self_hosted=other.self_hosted) == identity:
            released += rules.judge(approval.tool, arguments, Granted((rule,), arguments)).effect == "allow"
    return released
