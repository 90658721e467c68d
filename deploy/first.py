"""Prepares a first start: a workspace, an API key, and a sample session with a pending approval."""

from typing import Any

import httpx2

from deploy.folder import Folder
from models.audit.principal import system
from models.database import ids
from models.database.transactions import transaction
from models.people.invitation import Invitation, link_of
from models.workspace import key_lookup
from models.workspace.api_key import SCOPES, ApiKey, NewKey
from models.workspace.row import Workspace

WORKSPACE = "default"
KEY_FILE = "api_key"
METRICS_FILE = "metrics_token"
ADMIN = "admin@localhost"
"""The e-mail address of the person who started Assent on this machine."""

_SAMPLE = "Please look around in your working directory, and tell me what you see."
"""The stand-in model answers these words by a harmless command, `deploy.standin.replying.LOOK`."""


def api_key(folder: Folder) -> tuple[str, bool]:
    """Return the data folder's API key, and True if it is new. Creates one if it is missing or unknown to the database."""
    return _key(folder, KEY_FILE, NewKey("assent up", scopes=frozenset(SCOPES) - {"metrics"}))


def metrics_token(folder: Folder) -> str:
    """Return the data folder's key for the metrics of all workspaces. Creates one as `api_key` does."""
    return _key(folder, METRICS_FILE, NewKey("assent up: metrics", scopes=frozenset({"metrics"})))[0]


def _key(folder: Folder, name: str, new: NewKey) -> tuple[str, bool]:
    secret = (folder.read(name) or "").strip()
    if secret and key_lookup.authenticate(secret, "127.0.0.1"):
        return secret, False
    with transaction(workspace_id()) as db:
        _, secret = ApiKey.create(db, new)
    folder.write(name, secret + "\n")
    return secret, True


def workspace_id(name: str = WORKSPACE) -> str:
    """Return the id of the first workspace with this name. Creates the workspace if there is none."""
    with transaction(role="system") as db:
        existing: str | None = db.value("SELECT id FROM workspace WHERE name = %(name)s ORDER BY id LIMIT 1", name=name)
    if existing:
        return existing
    with transaction(ids.new("wrkspc")) as db:
        return Workspace.create(db, name).id


def sign_in_link() -> str:
    """Return a new one-time link for this machine's admin. Links of earlier starts end."""
    workspace = workspace_id()
    with transaction(workspace) as db:
        _, secret = Invitation.of_operator(db, ADMIN, by=system("assent up", workspace))
    return link_of(secret)


def sample_session(url: str, key: str) -> str:
    """Start a session whose agent proposes one harmless command. Returns the session's id. Raises httpx2.HTTPError."""
    with httpx2.Client(base_url=url, headers={"x-api-key": key}, timeout=10, trust_env=False) as client:
        toolset = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}
        agent = _post(client, "/v1/agents", {"name": "Sample", "model": "claude-opus-4-5", "tools": [toolset]})
        environments = client.get("/v1/environments").raise_for_status().json()["data"]
        body = {"agent": agent["id"], "environment_id": environments[0]["id"], "title": "A sample: decide what it asks"}
        session: str = _post(client, "/v1/sessions", body)["id"]
        message = {"type": "user.message", "content": [{"type": "text", "text": _SAMPLE}]}
        _post(client, f"/v1/sessions/{session}/events", {"events": [message]})
    return session


def waits(url: str, key: str, session_id: str) -> bool:
    """True if the session has a pending approval."""
    query = {"status": "pending", "session_id": session_id}
    try:
        response = httpx2.get(f"{url}/v1/approvals", params=query, headers={"x-api-key": key}, timeout=10, trust_env=False)
        return bool(response.raise_for_status().json()["data"])
    except httpx2.HTTPError:
        return False


def _post(client: httpx2.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    payload: dict[str, Any] = client.post(path, json=body).raise_for_status().json()
    return payload
