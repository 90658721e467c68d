"""Routes of a workspace's own keys of model providers."""

from typing import Annotated, Literal

from flask import Blueprint
from pydantic import Field, StringConstraints

from api.door.paging import Order, Selection, listed
from api.door.requests import Body, Nothing, Paged, examples
from api.door.responses import Page, ProviderKeyId, ResponseModel, Time
from api.door.routes import reads, writes
from api.v1.model import Provider
from models.audit.principal import Principal
from models.database.rows import Db
from models.workspace.provider_key import ProviderKey as ProviderKeyRow

provider_keys = Blueprint("provider_keys", __name__, url_prefix="/v1/provider_keys")

SCOPE = "admin"
NEWEST: Order[ProviderKeyRow] = Order("provider_keys", (ProviderKeyRow.id,))


class ProviderKeyCreate(Body):
    """A provider's key. It replaces the workspace's former key of the same provider."""

    model_config = examples({"provider": "anthropic", "key": "sk-ant-..."})

    provider: Annotated[Provider, Field(examples=["anthropic"])]
    """The name of a provider of this server."""
    key: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[!-~]+$")]
    """The key, in printable ASCII without spaces. No response shows the key."""


class ProviderKey(ResponseModel):
    """The workspace has a key of its own for this provider."""

    id: ProviderKeyId
    type: Literal["provider_key"]
    provider: str = Field(examples=["anthropic"])
    hint: str = Field(examples=["wXyZ"])
    """The key's last four characters; empty for a short key."""
    created_at: Time
    created_by: str = Field(examples=["api_key:key_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])


class ProviderKeyDeleted(ResponseModel):
    """The key is deleted. Requests to the provider use the operator's key again, if the operator has one."""

    id: ProviderKeyId
    type: Literal["provider_key_deleted"]


@provider_keys.post("")
@writes(ProviderKeyCreate, SCOPE, once=True, response=ProviderKey)
def create(db: Db, principal: Principal, body: ProviderKeyCreate) -> ProviderKey:
    """Store the workspace's own key for a provider, which replaces a former key.

    The key is stored encrypted, and only the process that calls models can decrypt it. It takes precedence over the operator's key.
    """
    return ProviderKey.from_row(ProviderKeyRow.store(db, principal, body.provider, body.key))


@provider_keys.get("")
@reads(Paged, SCOPE, response=Page[ProviderKey])
def index(db: Db, _principal: Principal, query: Paged) -> Page[ProviderKey]:
    """List the providers for which the workspace has a key of its own, newest first."""
    return listed(db, Selection(ProviderKeyRow), NEWEST, query, ProviderKey.from_row)


@provider_keys.delete("/<provider_key_id>")
@writes(Nothing, SCOPE, once=True, response=ProviderKeyDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, provider_key_id: str) -> ProviderKeyDeleted:
    """Delete a key, so that requests use the operator's key again, if the operator has one."""
    ProviderKeyRow.remove(db, principal, provider_key_id)
    return ProviderKeyDeleted(id=provider_key_id, type="provider_key_deleted")
