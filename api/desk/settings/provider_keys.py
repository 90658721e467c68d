"""Keys of model providers: a list, a new one, deleting one. No page shows a key."""

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.provider_keys import ProviderKeyCreate
from models.database.rows import Db
from models.errors import Refusal
from models.people.principal import PersonPrincipal
from models.settings import providers
from models.workspace.provider_key import ProviderKey, of_workspace


@page("/inbox/provider-keys", "provider_keys", "admin")
def provider_keys(db: Db, _: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> FramedPage:
    """Show the workspace's own keys."""
    [rows] = db.read(of_workspace())
    return FramedPage("settings/provider_keys.html", rows=rows, refusal=str(refusal or ""))


@page("/inbox/provider-keys/new", "provider_keys", "admin")
def new_provider_key(_db: Db, _: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form of a key."""
    names = [entry.name for entry in providers.registry()]
    return FramedPage("settings/new_provider_key.html", names=names, refusal=str(refusal or ""))


@action("/inbox/provider-keys", "admin", section="provider_keys", again=new_provider_key)
def store_provider_key(db: Db, person: PersonPrincipal) -> str:
    """Store a key in the place of the provider's former one."""
    form = {"provider": request.form.get("provider", ""), "key": request.form.get("key", "").strip()}
    body = validated(ProviderKeyCreate, form)
    ProviderKey.store(db, person, body.provider, body.key)
    return "/inbox/provider-keys"


@action("/inbox/provider-keys/<provider_key_id>", "admin", section="provider_keys", again=provider_keys)
def delete_provider_key(db: Db, person: PersonPrincipal, provider_key_id: str) -> str:
    """Delete a key. The operator's key is used again, if there is one."""
    ProviderKey.remove(db, person, provider_key_id)
    return "/inbox/provider-keys"
