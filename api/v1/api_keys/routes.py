"""Routes of API keys. List, get and update are the SDK's `beta.organization.api_keys`; create and rotate are Assent's own.

A key may only create and rotate keys whose scopes it has itself, and that end no later and have no wider networks than itself.
"""

from datetime import timedelta

from flask import Blueprint

from api.door import auth
from api.door.paging import Selection, id_page
from api.door.requests import NoQuery
from api.door.routes import reads, writes
from api.v1.api_keys import responses
from api.v1.api_keys.requests import ApiKeyCreate, ApiKeyList, ApiKeyRotate, ApiKeyUpdate
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.workspace.api_key import DEFAULT_SCOPES, ENVIRONMENT_SCOPES, SCOPES, ApiKey, NewKey

api_keys = Blueprint("api_keys", __name__, url_prefix="/v1/organizations/api_keys")

_EXPIRED = f"(expires_at IS NOT NULL AND expires_at <= {clock.STARTED})"
_STATUS = {
    "archived": "revoked_at IS NOT NULL",
    "expired": f"revoked_at IS NULL AND {_EXPIRED}",
    "inactive": f"revoked_at IS NULL AND NOT {_EXPIRED} AND disabled_at IS NOT NULL",
    "active": f"revoked_at IS NULL AND NOT {_EXPIRED} AND disabled_at IS NULL",
}
"""The conditions of each value of `ApiKey.status`."""


@api_keys.get("")
@reads(ApiKeyList, "admin", response=responses.ApiKeyPage)
def index(db: Db, principal: Principal, query: ApiKeyList) -> responses.ApiKeyPage:
    """List the workspace's API keys, newest first."""
    selection = Selection(ApiKey)
    if query.status:
        selection = selection.where(_STATUS[query.status])
    if query.workspace_id not in {None, principal.workspace_id}:
        selection = selection.where("false")
    if query.created_by_user_id:
        selection = selection.where("makers[1] = %(maker)s", maker=query.created_by_user_id)
    rows, has_more = id_page(db, selection, query)
    now = clock.now(db)
    return responses.ApiKeyPage.of([responses.ApiKey.of(row, now) for row in rows], has_more=has_more)


@api_keys.get("/<api_key_id>")
@reads(NoQuery, "admin", response=responses.ApiKey)
def show(db: Db, _principal: Principal, _query: NoQuery, api_key_id: str) -> responses.ApiKey:
    """Get an API key without its secret."""
    return responses.ApiKey.of(ApiKey.find(db, api_key_id), clock.now(db))


def _scopes_of_new(body: ApiKeyCreate) -> frozenset[str]:
    if body.scopes is not None:
        return frozenset(body.scopes) & set(SCOPES)  # `ApiKey.create` refuses unknown scopes with its own error
    return ENVIRONMENT_SCOPES if body.environment_id else DEFAULT_SCOPES


@api_keys.post("")
@writes(ApiKeyCreate, "admin", also=_scopes_of_new, response=responses.NewApiKey, shown_once="key")
def create(db: Db, principal: Principal, body: ApiKeyCreate) -> responses.NewApiKey:
    """Create an API key, whose secret is in this response only."""
    new = NewKey(
        name=body.name,
        scopes=None if body.scopes is None else frozenset(body.scopes),
        environment_id=body.environment_id,
        expires_at=body.expires_at,
        allowed_cidrs=body.allowed_cidrs,
    )
    row, secret = ApiKey.create(db, new, by=principal)
    return responses.NewApiKey.of(row, clock.now(db), key=secret)


@api_keys.post("/<api_key_id>")
@writes(ApiKeyUpdate, "admin", once=True, response=responses.ApiKey)
def update(db: Db, principal: Principal, body: ApiKeyUpdate, api_key_id: str) -> responses.ApiKey:
    """Rename an API key, switch it off or on, or archive it for good.

    The change takes effect on every server within seconds.
    """
    if body.status == "active":
        auth.require(principal, *ApiKey.find(db, api_key_id).scopes)
    row = ApiKey.change(db, api_key_id, name=body.name, status=body.status, by=principal)
    return responses.ApiKey.of(row, clock.now(db))


@api_keys.post("/<api_key_id>/rotate")
@writes(ApiKeyRotate, "admin", response=responses.NewApiKey, shown_once="key")
def rotate(db: Db, principal: Principal, body: ApiKeyRotate, api_key_id: str) -> responses.NewApiKey:
    """Replace an API key by a new key with the same rights.

    The old key stays valid for `overlap_seconds`.
    """
    auth.require(principal, *ApiKey.find(db, api_key_id).scopes)
    row, secret = ApiKey.rotate(db, api_key_id, overlap=timedelta(seconds=body.overlap_seconds), by=principal)
    return responses.NewApiKey.of(row, clock.now(db), key=secret)
