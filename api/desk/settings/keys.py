"""API keys: a list, a new one whose secret is shown once, switching one off, archiving it."""

from flask import request

from api.desk.shell.blueprint import action, page
from api.door import auth
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.api_keys import ApiKeyCreate, ApiKeyUpdate
from models.database import clock
from models.database.rows import Db
from models.errors import Refusal
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.workspace.api_key import DEFAULT_SCOPES, SCOPES, ApiKey, NewKey

_MOST = 500

SENTENCES = {
    "read": "Reads everything: sessions, events, approvals, agents.",
    "agents": "Creates and changes agents and environments, and the tools of a session.",
    "sessions": "Starts sessions, sends messages, stops runs, and gives the results of a client's tools.",
    "environment": "Works for self-hosted environments: takes calls and gives their results.",
    "approvals": "Decides approvals, and revokes grants. A key is no person: it never counts where several people must agree.",
    "reveal": "Sees the secrets in approvals and events. The audit has a record of each time.",
    "admin": "Changes the workspace's policy, and reads, verifies and exports the audit.",
    "metrics": "Reads the metrics of all workspaces.",
}
"""What a key with a scope does, by the scope."""


@page("/inbox/keys", "keys", "admin")
def keys(db: Db, person: PersonPrincipal, refusal: Refusal | None = None, secret: str = "", **_path_ids: str) -> FramedPage:
    """Show the keys of the workspace, newest first. `secret` is a new key's, which is shown once."""
    now = clock.now(db)
    rows = db.find(ApiKey, "ORDER BY id DESC LIMIT %(most)s", most=_MOST)
    return FramedPage(
        "settings/keys.html",
        rows=[(row, row.status(now)) for row in rows],
        names=Names.of(db, [f"user:{row.makers[0]}" for row in rows if row.makers]),
        me=person.person_id,
        sentences=SENTENCES,
        secret=secret,
        refusal=str(refusal or ""),
    )


@page("/inbox/keys/new", "keys", "admin")
def new_key(_db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form of a new key."""
    return FramedPage(
        "settings/new_key.html",
        scopes=[scope for scope in SCOPES if scope in person.scopes or scope == "environment"],
        sentences=SENTENCES,
        chosen=request.form.getlist("scopes") or sorted(DEFAULT_SCOPES),
        refusal=str(refusal or ""),
        name=request.form.get("name", ""),
    )


@action("/inbox/keys", "admin", section="keys", again=new_key)
def create(db: Db, person: PersonPrincipal) -> FramedPage:
    """Create a key. Its secret is on this page only."""
    body = validated(ApiKeyCreate, {"name": request.form.get("name", ""), "scopes": request.form.getlist("scopes")})
    auth.require(person, *(frozenset(body.scopes or ()) & set(SCOPES) - {"environment"}))
    _row, secret = ApiKey.create(db, NewKey(body.name, scopes=frozenset(body.scopes or ())), by=person)
    return keys(db, person, secret=secret)


@action("/inbox/keys/<api_key_id>", "admin", section="keys", again=keys)
def change(db: Db, person: PersonPrincipal, api_key_id: str) -> str:
    """Switch a key off or on, or archive it for good."""
    body = validated(ApiKeyUpdate, {"status": request.form.get("status", "")})
    if body.status == "active":
        auth.require(person, *(set(ApiKey.find(db, api_key_id).scopes) - {"environment"}))
    ApiKey.change(db, api_key_id, name=None, status=body.status, by=person)
    return "/inbox/keys"
