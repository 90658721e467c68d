"""Routes of a workspace's own keys of model providers."""

from flask import Blueprint

from api.door.paging import Order, Selection, listed
from api.door.requests import Nothing, Paged
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.provider_keys import responses
from api.v1.provider_keys.requests import ProviderKeyCreate
from models.audit.principal import Principal
from models.database.rows import Db
from models.workspace.provider_key import ProviderKey

provider_keys = Blueprint("provider_keys", __name__, url_prefix="/v1/provider_keys")

SCOPE = "admin"
NEWEST: Order[ProviderKey] = Order("provider_keys", (ProviderKey.id,))


@provider_keys.post("")
@writes(ProviderKeyCreate, SCOPE, once=True, response=responses.ProviderKey)
def create(db: Db, principal: Principal, body: ProviderKeyCreate) -> responses.ProviderKey:
    """Store the workspace's own key for a provider, which replaces a former key.

    The key is stored encrypted, and only the process that calls models can decrypt it. It takes precedence over the operator's key.
    """
    return responses.ProviderKey.from_row(ProviderKey.store(db, principal, body.provider, body.key))


@provider_keys.get("")
@reads(Paged, SCOPE, response=Page[responses.ProviderKey])
def index(db: Db, _principal: Principal, query: Paged) -> Page[responses.ProviderKey]:
    """List the providers for which the workspace has a key of its own, newest first."""
    return listed(db, Selection(ProviderKey), NEWEST, query, responses.ProviderKey.from_row)


@provider_keys.delete("/<provider_key_id>")
@writes(Nothing, SCOPE, once=True, response=responses.ProviderKeyDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, provider_key_id: str) -> responses.ProviderKeyDeleted:
    """Delete a key, so that requests use the operator's key again, if the operator has one."""
    ProviderKey.remove(db, principal, provider_key_id)
    return responses.ProviderKeyDeleted(id=provider_key_id, type="provider_key_deleted")
