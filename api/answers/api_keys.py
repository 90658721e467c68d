"""API keys as the SDK knows them, with what we add."""

from typing import Literal

from api.answers.base import Answer, Time


class KeyScope(Answer):
    """Where a key belongs."""

    type: Literal["workspace"]
    workspace_id: str


class ApiKey(Answer):
    """A key, without its secret."""

    id: str
    type: Literal["api_key"]
    name: str
    partial_key_hint: str
    """Its prefix and last four characters."""
    status: Literal["active", "inactive", "expired", "archived"]
    scope: KeyScope
    principal: None
    created_by: None
    created_at: Time
    expires_at: Time | None
    last_used_at: Time | None
    """To the minute."""
    scopes: list[str]
    """What it allows."""
    allowed_cidrs: list[str] | None
    """The networks that it may be used from; null is all."""
    environment_id: str | None
    """The one environment that it serves, if it is bound to one."""


class NewApiKey(ApiKey):
    """A new key with its secret."""

    key: str | None
    """The secret, shown once. Null where the same request is answered again: then rotate or archive the key."""


class ApiKeyPage(Answer):
    """A page of keys, newest first."""

    data: list[ApiKey]
    first_id: str | None
    last_id: str | None
    has_more: bool
    """Whether there are more in the direction that was asked for."""
