"""Answers about API keys: the SDK's fields, with Assent's own."""

from typing import Literal

from pydantic import Field

from api.answers.base import Answer, ApiKeyId, EnvironmentId, Time, WorkspaceId


class KeyScope(Answer):
    """The workspace of a key."""

    type: Literal["workspace"]
    workspace_id: WorkspaceId


class ApiKey(Answer):
    """A key, without its secret."""

    id: ApiKeyId
    type: Literal["api_key"]
    name: str = Field(examples=["Inbox"])
    partial_key_hint: str = Field(examples=["sk-assent-...x7Qz"])
    """The prefix and the last four characters of the secret."""
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
    """The environment to which the key is bound."""


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
