"""Responses about API keys: the SDK's fields, with Assent's own."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from api.door.examples import IDS
from api.door.responses import ApiKeyId, EnvironmentId, Identified, IdPage, ResponseModel, Time, WorkspaceId
from models.pure.key_secret import PREFIX
from models.workspace import api_key


class KeyScope(ResponseModel):
    """The workspace of a key."""

    type: Literal["workspace"]
    workspace_id: WorkspaceId


class KeyMaker(ResponseModel):
    """The person who made a key."""

    id: str = Field(examples=[IDS["user_id"]])
    type: Literal["user"]


class ApiKey(Identified):
    """A key, without its secret."""

    id: ApiKeyId
    type: Literal["api_key"]
    name: str = Field(examples=["Inbox"])
    partial_key_hint: str = Field(examples=["sk-assent-...x7Qz"])
    """The prefix and the last four characters of the secret."""
    status: Literal["active", "inactive", "expired", "archived"]
    scope: KeyScope
    principal: None
    created_by: KeyMaker | None
    """The person who made the key. For a key that another key created: the person who made the first of these keys. Null for a key
    of the operator's command line. With four eyes this person does not decide what the key started."""
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

    @classmethod
    def of(cls, row: api_key.ApiKey, now: datetime, **secret: Any) -> Self:
        """Return a key as it is at `now`."""
        return cls.from_row(
            row,
            partial_key_hint=f"{PREFIX}...{row.hint}",
            status=row.status(now),
            created_by=KeyMaker(id=row.makers[0], type="user") if row.makers else None,
            scope=KeyScope(type="workspace", workspace_id=row.workspace_id),
            **secret,
        )


class NewApiKey(ApiKey):
    """A new key with its secret."""

    key: str | None = Field(examples=["sk-assent-...x7Qz"])
    """The secret, which is shown once. Null in the response to a repeated request: then rotate or archive the key."""


class ApiKeyPage(IdPage[ApiKey]):
    """A page of keys, newest first."""
