"""API keys as the SDK knows them, with what we add."""

from typing import Literal

from pydantic import Field

from api.answers.base import Answer, ApiKeyId, EnvironmentId, Time, WorkspaceId


class KeyScope(Answer):
    """Where a key belongs."""

    type: Literal["workspace"]
    workspace_id: WorkspaceId


class ApiKey(Answer):
    """A key, without its secret."""

    id: ApiKeyId
    type: Literal["api_key"]
    name: str = Field(examples=["Inbox"])
    partial_key_hint: str = Field(examples=["sk-assent-...x7Qz"])
    """Its prefix and last four characters."""
    status: Literal["active", "inactive", "expired", "archived"]
    scope: KeyScope
    principal: None
    created_by: None
    created_at: Time
    expires_at: Time | None
    last_used_at: Time | None
    """The time of the last request with this key, to the minute."""
    scopes: list[str] = Field(examples=[["read", "approvals"]])
    """The scopes of the key."""
    allowed_cidrs: list[str] | None
    """The networks from which the key may be used. Null means all."""
    environment_id: EnvironmentId | None = Field(examples=[None])
    """The environment that the key is bound to."""


class NewApiKey(ApiKey):
    """A new key with its secret."""

    key: str | None = Field(examples=["sk-assent-...x7Qz"])
    """The secret, which is shown once. Null in the response to a repeated request: then rotate or archive the key."""


class ApiKeyPage(Answer):
    """A page of keys, newest first."""

    data: list[ApiKey]
    first_id: str | None
    last_id: str | None
    has_more: bool
    """Whether there are more keys in the requested direction."""
