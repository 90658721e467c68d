"""Keys of model providers: a list, a new one, deleting one. No page shows a key."""

from flask import request

from api.inbox.blueprint import inbox
from api.inbox.door import Page, action, page, shows
from api.parsing import validated
from api.requests.provider_keys import ProviderKeyCreate
from models import providers
from models.database.rows import Db
from models.errors import Refusal
from models.people.principal import PersonPrincipal
from models.workspace.provider_key import ProviderKey, of_workspace


def drawn(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> Page:
    """The page of provider keys."""
    [rows] = db.read(of_workspace())
    names = [entry.name for entry in providers.registry()]
    return shows("provider_keys.html", rows=rows, names=names, refusal=str(refusal or ""))


@inbox.get("/inbox/provider-keys")
@page("provider_keys", "admin")
def provider_keys(db: Db, person: PersonPrincipal) -> Page:
    """The workspace's own keys."""
    return drawn(db, person)


@inbox.post("/inbox/provider-keys")
@action("admin", section="provider_keys", again=drawn)
def store_provider_key(db: Db, person: PersonPrincipal) -> str:
    """Store a key in the place of the provider's former one."""
    form = {"provider": request.form.get("provider", ""), "key": request.form.get("key", "").strip()}
    body = validated(ProviderKeyCreate, form)
    ProviderKey.store(db, person, body.provider, body.key)
    return "/inbox/provider-keys"


@inbox.post("/inbox/provider-keys/<provider_key_id>")
@action("admin", section="provider_keys", again=drawn)
def delete_provider_key(db: Db, person: PersonPrincipal, provider_key_id: str) -> str:
    """Delete a key: the operator's key holds again."""
    ProviderKey.remove(db, person, provider_key_id)
    return "/inbox/provider-keys"
