"""Grants as we answer them: standing approvals."""

from typing import Any, Literal

from api.answers.base import Answer, Time


class Grant(Answer):
    """What a decision allowed beyond its call."""

    id: str
    type: Literal["grant"]
    scope: Literal["session", "always"]
    agent_id: str
    session_id: str | None
    """Null for `always`, which is for every session of the agent."""
    approval_id: str
    """The approval whose decision gave it."""
    tool: str
    match: str | dict[str, Any]
    covers: str
    """In words."""
    given_by: str
    created_at: Time
    expires_at: Time | None
    max_uses: int | None
    uses: int
    """Calls that it allowed."""
    revoked_at: Time | None
    revoked_by: str | None
    """`session` where it ended with its session."""
    live: bool
    """Whether it still allows anything."""


class GrantRevoked(Answer):
    """It allows nothing any more, not even what it allowed and has not begun."""

    id: str
    type: Literal["grant_revoked"]
