"""Responses about grants, the standing approvals."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from api.door.examples import IDS
from api.door.responses import AgentId, ResponseModel, SessionId, Time
from models.pure.offer import Offer
from models.session.approval import grant
from models.session.event.fields import ApprovalId, GrantId


class Grant(ResponseModel):
    """The later calls that a decision allows in advance."""

    id: GrantId
    type: Literal["grant"]
    scope: Literal["session", "always"]
    agent_id: AgentId
    session_id: SessionId | None
    """Null for the scope `always`, which covers every session of the agent."""
    approval_id: ApprovalId
    """The approval whose decision created the grant."""
    tool: str = Field(examples=["bash"])
    match: str | dict[str, Any] = Field(examples=["bash(git push *)"])
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """The covered calls, in words."""
    given_by: str = Field(examples=[f"api_key:{IDS['api_key_id']}"])
    created_at: Time
    expires_at: Time | None
    max_uses: int | None
    uses: int
    """The number of calls that the grant has allowed."""
    revoked_at: Time | None
    revoked_by: str | None
    """The principal that revoked the grant. `session` if the grant ended with its session."""
    live: bool = Field(examples=[True])
    """False once the grant is revoked, expired or used up."""
    not_offered: str | None = Field(examples=[None])
    """Why a live grant allows nothing at present: its tool no longer offers grants of this scope or match. Null if it does."""

    @classmethod
    def of(cls, row: grant.Grant, now: datetime, offer: Offer) -> Self:
        """Return a grant as it is at `now`. `offer` is the present offer of the grant's tool."""
        live = row.is_live(now)
        return cls.from_row(row, live=live, not_offered=(row.why_not_offered(offer) or None) if live else None)


class GrantRevoked(ResponseModel):
    """The grant is revoked."""

    id: GrantId
    type: Literal["grant_revoked"]
