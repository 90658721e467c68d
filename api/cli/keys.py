"""`assent keys`: API keys, with their scopes, networks and expiry."""

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import Number, as_json, show, show_secret
from api.cli.names import names_in
from api.cli.nouns import IdOf

_KEYS = "/v1/organizations/api_keys"


@click.group()
def keys() -> None:
    """Create, list, rotate and revoke API keys. The key in use needs the scope admin, and each scope that it gives to another.

    `assent database key` creates a workspace's first key.
    """


@keys.command("create")
@click.argument("name")
@click.option(
    "--scopes", help="Of read, agents, sessions, environment, approvals, reveal, admin, metrics.  [default: the first three]"
)
@click.option("--environment", type=IdOf("environment"), help="Bind the key to the worker of this self-hosted environment.")
@click.option("--expires-in-days", type=Number(0, 3660, min_open=True), help="Default: the key never expires.")
@click.option("--allow", "networks", multiple=True, metavar="CIDR", help="Allow only this network. Repeat it for several networks.")
@as_json
@with_inbox
def keys_create(
    inbox: Inbox,
    name: str,
    scopes: str | None,
    environment: str | None,
    expires_in_days: float | None,
    networks: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create a key. Its secret is shown once."""
    body: dict[str, Any] = {"name": name}
    body |= {"scopes": [scope.strip() for scope in scopes.split(",")]} if scopes is not None else {}
    body |= {"environment_id": environment} if environment else {}
    body |= {"expires_at": (datetime.now(UTC) + timedelta(days=expires_in_days)).isoformat()} if expires_in_days else {}
    body |= {"allowed_cidrs": list(networks)} if networks else {}
    row = inbox.call("POST", _KEYS, json=body)
    limits = [
        f"in {row['environment_id']} only" if row["environment_id"] else "",
        f"from {', '.join(row['allowed_cidrs'])}" if row["allowed_cidrs"] else "",
        f"until {row['expires_at']}" if row["expires_at"] else "",
    ]
    show_secret(row, "key", f"{row['id']}: {', '.join([*row['scopes'], *filter(None, limits)])}. This is shown once:", as_json)


@keys.command("list")
@as_json
@with_inbox
def keys_list(inbox: Inbox, as_json: bool) -> None:
    """List the workspace's keys, newest first. `created_by` is null for keys of the command line's operator; four eyes exclude
    nobody for them."""
    rows = [_without_secrets(row) for row in inbox.listed(_KEYS)]
    name = names_in(inbox, [] if as_json else rows, "created_by")
    show([row | {"created_by": name(row["created_by"])} for row in rows], as_json)


@keys.command("rotate")
@click.argument("key_id", type=IdOf("key"))
@click.option("--overlap-hours", type=Number(0, 8784), default=24, show_default=True, help="How long the old key stays valid.")
@as_json
@with_inbox
def keys_rotate(inbox: Inbox, key_id: str, overlap_hours: float, as_json: bool) -> None:
    """Replace a key by a new one with the same scopes and limits. The new secret is shown once."""
    row = inbox.call("POST", f"{_KEYS}/{key_id}/rotate", json={"overlap_seconds": round(overlap_hours * 3600)})
    note = f"{row['id']} replaces {key_id}, which stays valid for {overlap_hours:g} more hours. This is shown once:"
    show_secret(row, "key", note, as_json)


@keys.command("revoke")
@click.argument("key_id", type=IdOf("key"))
@with_inbox
def keys_revoke(inbox: Inbox, key_id: str) -> None:
    """Revoke a key for good. Takes effect everywhere within a few seconds."""
    inbox.call("POST", f"{_KEYS}/{key_id}", json={"status": "archived"})
    click.echo(f"{key_id} is revoked.")


def _without_secrets(row: dict[str, Any]) -> dict[str, Any]:
    fields = ("id", "name", "status", "scopes", "environment_id", "allowed_cidrs", "partial_key_hint")
    times = ("created_at", "expires_at", "last_used_at")
    maker = {"created_by": f"user:{row['created_by']['id']}" if row["created_by"] else None}
    return {name: row[name] for name in fields} | maker | {name: row[name] for name in times}
