"""Routes of grants, the standing approvals."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self

from flask import Blueprint
from pydantic import Field

from api.door.examples import IDS
from api.door.paging import Order, Selection, page
from api.door.requests import NoQuery, Nothing, Paged
from api.door.responses import AgentId, Page, ResponseModel, SessionId, Time
from api.door.routes import reads, writes
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.policy.session_policies import SessionPolicies
from models.pure.offer import Offer
from models.pure.policy import Granted, Rule
from models.session.approval.deadline import OVERDUE
from models.session.approval.grant import Grant as GrantRow
from models.session.approval.grant import is_exact, live_sql
from models.session.approval.grant_use import Uses, uses_of
from models.session.approval.offers import offers_of
from models.session.approval.reach import Reach
from models.session.approval.row import Approval
from models.session.event.fields import ApprovalId, GrantId
from models.session.event.of_thread import ThreadId
from models.session.row import Session
from models.session.thread.row import Thread
from models.workspace.row import Workspace

grants = Blueprint("grants", __name__, url_prefix="/v1/grants")

NEWEST: Order[GrantRow] = Order("grants", (GrantRow.created_at, GrantRow.id))
MAX_PREVIEWED = 500
"""Most pending approvals that a preview considers, oldest first."""
LIVE = live_sql(clock.STARTED)
_OF_APPROVALS = "workspace_id = ANY(%(workspaces)s) AND created_at = ANY(%(moments)s) AND approval_id = ANY(%(approvals)s)"


class GrantList(Paged):
    """GET /v1/grants: newest first."""

    session_id: str | None = Field(None, max_length=128)
    agent_id: str | None = Field(None, max_length=128)
    tool: str | None = Field(None, max_length=200)
    live: bool | None = None
    """Whether the grant still allows calls: it is not revoked, expired or used up."""


class Grant(ResponseModel):
    """The later calls that a decision allows in advance."""

    id: GrantId
    type: Literal["grant"]
    scope: Literal["session", "always"]
    agent_id: AgentId
    agent_version: int | None = Field(examples=[1])
    """The version of the agent that asked. Null for grants of earlier releases."""
    session_id: SessionId | None
    """Null for the scope `always`, which covers every session of the agent."""
    session_thread_id: ThreadId | None
    """The thread that asked. Null for grants of earlier releases."""
    approval_id: ApprovalId
    """The approval whose decision created the grant."""
    tool: str = Field(examples=["bash"])
    match: str | dict[str, Any] = Field(examples=["bash(git push *)"])
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """The covered calls, in words."""
    reach: str = Field(examples=["calls of the agent Researcher, version 2, in this session"])
    """The agents whose calls are covered, in words."""
    include_sub_agents: bool = Field(examples=[False])
    """Whether the grant covers the calls of every agent of its session."""
    given_by: str = Field(examples=[f"api_key:{IDS['api_key_id']}"])
    created_at: Time
    expires_at: Time | None
    max_uses: int | None
    uses: int
    """The number of calls that the grant has allowed."""
    uses_per_day: float
    """The mean number of uses in a day, while the grant was in force."""
    last_used_at: Time | None
    """When the grant last allowed a call. Null if it never did, or only under an earlier release."""
    revoked_at: Time | None
    revoked_by: str | None
    """The principal that revoked the grant. `session` if the grant ended with its session."""
    live: bool = Field(examples=[True])
    """False once the grant is revoked, expired or used up."""
    not_offered: str | None = Field(examples=[None])
    """Why a live grant allows nothing at present: its tool no longer offers grants of this scope or match. Null if it does."""

    @classmethod
    def of(cls, row: GrantRow, uses: Uses, now: datetime, offer: Offer) -> Self:
        """Return a grant as it is at `now`. `offer` is the present offer of the grant's tool."""
        live = row.is_live(now)
        why_not = (row.why_not_offered(offer) or None) if live else None
        return cls.from_row(
            row,
            session_thread_id=row.thread_id,
            live=live,
            not_offered=why_not,
            uses=uses.calls,
            uses_per_day=round(row.per_day(uses.calls, now), 2),
            last_used_at=uses.last_at,
        )


class GrantRevoked(ResponseModel):
    """The grant is revoked."""

    id: GrantId
    type: Literal["grant_revoked"]


@grants.get("")
@reads(GrantList, response=Page[Grant])
def index(db: Db, _principal: Principal, query: GrantList) -> Page[Grant]:
    """List the workspace's grants, newest first."""
    selection = Selection(GrantRow).equal(session_id=query.session_id, agent_id=query.agent_id, tool=query.tool)
    if query.live is not None:
        selection = selection.where(LIVE if query.live else f"NOT {LIVE}")
    rows, after = page(db, selection, NEWEST, query.limit, query.page)
    return Page[Grant](data=responses_of(db, rows), next_page=after)


@grants.get("/<grant_id>")
@reads(NoQuery, response=Grant)
def show(db: Db, _principal: Principal, _query: NoQuery, grant_id: str) -> Grant:
    """Get a grant: the calls that it covers, the person who gave it, and the number of its uses."""
    return responses_of(db, [GrantRow.find(db, grant_id)])[0]


@grants.delete("/<grant_id>")
@writes(Nothing, "approvals", once=True, response=GrantRevoked)
def revoke(db: Db, principal: Principal, _body: Nothing, grant_id: str) -> GrantRevoked:
    """Revoke a grant.

    Idempotent. Calls that the grant has allowed and that have not started are no longer allowed.
    """
    GrantRow.find(db, grant_id).revoke(db, principal)
    return GrantRevoked(id=grant_id, type="grant_revoked")


def responses_of(db: Db, rows: Sequence[GrantRow]) -> list[Grant]:
    """Return the responses for grants."""
    now, uses, offers = clock.now(db), uses_of(db, [row.id for row in rows]), offers_of(db, rows)
    return [Grant.of(row, uses[row.id], now, offers[row.id]) for row in rows]


def grants_by_approval(db: Db, approvals: Sequence[Approval]) -> dict[str, list[Grant]]:
    """Return the grants that these approvals' decisions created, by the approval's id, in their order."""
    creators = [row for row in approvals if (row.decision or {}).get("scope")]
    if not creators:
        return {}
    # A grant has its decision's time, which an existing index covers.
    rows = db.find(
        GrantRow,
        f"WHERE {_OF_APPROVALS} ORDER BY id",
        workspaces=list({row.workspace_id for row in creators}),
        moments=list({row.decided_at for row in creators}),
        approvals=[row.id for row in creators],
    )
    by_approval: dict[str, list[Grant]] = {}
    for response in responses_of(db, rows):
        by_approval.setdefault(response.approval_id, []).append(response)
    return by_approval


def would_release(db: Db, approval: Approval, rules: Sequence[Rule], reach: Reach) -> int:
    """Return the number of other waiting calls that grants with these rules together would allow, where their tool offers such
    grants.

    Rules are matched against inputs with masked secrets, since the caller could otherwise guess secrets by patterns. A rule about
    one exact input is matched against the real inputs, since hashes are not secrets.
    """
    scope = "session" if reach.session_id else "always"
    column = {"session_id": reach.session_id} if reach.session_id else {"agent_id": reach.agent_id}
    waiting = Selection(Approval).equal(**column, tool=approval.tool, status="pending", kind="tool_call")
    waiting = waiting.where(f"id <> %(id)s AND NOT {OVERDUE}", id=approval.id)
    others = waiting.select(db, "ORDER BY created_at LIMIT %(limit)s", limit=MAX_PREVIEWED)
    db.find(Session, "WHERE id = ANY(%(ids)s)", ids=list({row.session_id for row in others}))
    Thread.read_ahead(db, [approval, *others])
    workspace = Workspace.policies(db)

    def policies_of(row: Approval) -> tuple[SessionPolicies, str]:
        session = db.get_one(Session, row.session_id)
        policies = session.policies_of(db, row.thread(db), workspace)
        return policies, policies.identity(approval.tool, self_hosted=session.self_hosted)

    exact = all(map(is_exact, rules))
    count, (_, identity) = 0, policies_of(approval)
    for other in others:
        if not reach.covers(other.thread(db)):
            continue
        arguments = json.loads(other.input) if exact else other.masked.arguments
        policies, other_identity = policies_of(other)
        if other_identity == identity and policies.quorum(approval.tool).offer.gives(scope, exact=exact):
            count += policies.judge(approval.tool, arguments, Granted(tuple(rules), arguments)).effect == "allow"
    return count
