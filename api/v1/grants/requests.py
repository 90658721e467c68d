"""Requests about grants."""

from pydantic import Field

from api.door.requests import Paged


class GrantList(Paged):
    """GET /v1/grants: newest first."""

    session_id: str | None = Field(None, max_length=128)
    agent_id: str | None = Field(None, max_length=128)
    tool: str | None = Field(None, max_length=200)
    live: bool | None = None
    """Whether the grant still allows calls: it is not revoked, expired or used up."""
