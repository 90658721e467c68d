"""Requests about API keys. The list and the update are the SDK's `beta.organization.api_keys`; the others are Assent's own."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from api.door.examples import IDS
from api.door.requests import YEAR, Body, Id, IdPaged, Moment, Name, examples

Scope = Annotated[str, StringConstraints(max_length=32)]


class ApiKeyList(IdPaged):
    """GET /v1/organizations/api_keys: newest first, or the page before or after a key."""

    status: Literal["active", "inactive", "expired", "archived"] | None = None
    workspace_id: Id | None = None
    created_by_user_id: Id | None = None
    """The person in `created_by`."""


class ApiKeyCreate(Body):
    """A new API key. The SDK has no method for it."""

    model_config = examples(
        {"name": "Inbox", "scopes": ["read", "approvals"]},
        {"name": "Worker", "environment_id": IDS["environment_id"]},
    )

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=20)] | None = None
    """Default: `read`, `agents` and `sessions`. With `environment_id`: `read` and `environment`."""
    environment_id: Id | None = None
    """The self-hosted environment to bind the key to."""
    expires_at: Annotated[Moment, Field(strict=False)] | None = None
    """Left out: never or, if a key creates the key, when that key expires. No later than that."""
    allowed_cidrs: list[Annotated[str, StringConstraints(max_length=64)]] | None = None
    """The networks from which the key may be used. Left out: all or, if a key creates the key, the networks of that key. It cannot
    have others."""


class ApiKeyUpdate(Body):
    """A new name or status of an API key. An archived key cannot be used again."""

    model_config = examples(
        {"status": "inactive"},
        {"name": "Inbox of the team"},
    )

    name: Name | None = None
    status: Literal["active", "inactive", "archived"] | None = None


class ApiKeyRotate(Body):
    """The replacement of an API key."""

    model_config = examples(
        {"overlap_seconds": 3600},
    )

    overlap_seconds: Annotated[int, Field(ge=0, le=YEAR)] = 86_400
    """The seconds for which the old key stays valid."""
