"""Routes of API keys. List, get and update are the SDK's `beta.organization.api_keys`; create and rotate are Assent's own.

A key may only create and rotate keys whose scopes it has itself, and that end no later and have no wider networks than itself.
"""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from flask import Blueprint
from pydantic import Field, StringConstraints

from api.door import auth
from api.door.examples import IDS
from api.door.paging import Selection, id_page
from api.door.requests import YEAR, Body, Id, IdPaged, Moment, Name, NoQuery, examples
from api.door.responses import ApiKeyId, EnvironmentId, Identified, IdPage, ResponseModel, Time, WorkspaceId
from api.door.routes import reads, writes
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.pure.key_secret import PREFIX
from models.workspace.api_key import DEFAULT_SCOPES, ENVIRONMENT_SCOPES, SCOPES, NewKey
from models.workspace.api_key import ApiKey as ApiKeyRow

api_keys = Blueprint("api_keys", __name__, url_prefix="/v1/organizations/api_keys")

_EXPIRED = f"(expires_at IS NOT NULL AND expires_at <= {clock.STARTED})"
_STATUS = {
    "archived": "revoked_at IS NOT NULL",
    "expired": f"revoked_at IS NULL AND {_EXPIRED}",
    "inactive": f"revoked_at IS NULL AND NOT {_EXPIRED} AND disabled_at IS NOT NULL",
    "active": f"revoked_at IS NULL AND NOT {_EXPIRED} AND disabled_at IS NULL",
}
"""The conditions of each value of `ApiKey.status`."""
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
    def of(cls, row: ApiKeyRow, now: datetime, **secret: Any) -> Self:
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


@api_keys.get("")
@reads(ApiKeyList, "admin", response=ApiKeyPage)
def index(db: Db, principal: Principal, query: ApiKeyList) -> ApiKeyPage:
    """List the workspace's API keys, newest first."""
    selection = Selection(ApiKeyRow)
    if query.status:
        selection = selection.where(_STATUS[query.status])
    if query.workspace_id not in {None, principal.workspace_id}:
        selection = selection.where("false")
    if query.created_by_user_id:
        selection = selection.where("makers[1] = %(maker)s", maker=query.created_by_user_id)
    rows, has_more = id_page(db, selection, query)
    now = clock.now(db)
    return ApiKeyPage.of([ApiKey.of(row, now) for row in rows], has_more=has_more)


@api_keys.get("/<api_key_id>")
@reads(NoQuery, "admin", response=ApiKey)
def show(db: Db, _principal: Principal, _query: NoQuery, api_key_id: str) -> ApiKey:
    """Get an API key without its secret."""
    return ApiKey.of(ApiKeyRow.find(db, api_key_id), clock.now(db))


def _scopes_of_new(body: ApiKeyCreate) -> frozenset[str]:
    if body.scopes is not None:
        return frozenset(body.scopes) & set(SCOPES)  # `ApiKeyRow.create` refuses unknown scopes with its own error
    return ENVIRONMENT_SCOPES if body.environment_id else DEFAULT_SCOPES


@api_keys.post("")
@writes(ApiKeyCreate, "admin", also=_scopes_of_new, response=NewApiKey, shown_once="key")
def create(db: Db, principal: Principal, body: ApiKeyCreate) -> NewApiKey:
    """Create an API key, whose secret is in this response only."""
    new = NewKey(
        name=body.name,
        scopes=None if body.scopes is None else frozenset(body.scopes),
        environment_id=body.environment_id,
        expires_at=body.expires_at,
        allowed_cidrs=body.allowed_cidrs,
    )
    row, secret = ApiKeyRow.create(db, new, by=principal)
    return NewApiKey.of(row, clock.now(db), key=secret)


@api_keys.post("/<api_key_id>")
@writes(ApiKeyUpdate, "admin", once=True, response=ApiKey)
def update(db: Db, principal: Principal, body: ApiKeyUpdate, api_key_id: str) -> ApiKey:
    """Rename an API key, switch it off or on, or archive it for good.

    The change takes effect on every server within seconds.
    """
    if body.status == "active":
        auth.require(principal, *ApiKeyRow.find(db, api_key_id).scopes)
    row = ApiKeyRow.change(db, api_key_id, name=body.name, status=body.status, by=principal)
    return ApiKey.of(row, clock.now(db))


@api_keys.post("/<api_key_id>/rotate")
@writes(ApiKeyRotate, "admin", response=NewApiKey, shown_once="key")
def rotate(db: Db, principal: Principal, body: ApiKeyRotate, api_key_id: str) -> NewApiKey:
    """Replace an API key by a new key with the same rights.

    The old key stays valid for `overlap_seconds`.
    """
    auth.require(principal, *ApiKeyRow.find(db, api_key_id).scopes)
    row, secret = ApiKeyRow.rotate(db, api_key_id, overlap=timedelta(seconds=body.overlap_seconds), by=principal)
    return NewApiKey.of(row, clock.now(db), key=secret)
