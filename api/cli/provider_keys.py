"""`assent provider-keys`: a workspace's own keys of model providers."""

import sys

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json, show
from api.cli.names import names_in
from api.cli.nouns import IdOf

SHOWN = ("id", "provider", "hint", "created_at", "created_by")


@click.group("provider-keys")
def provider_keys() -> None:
    """Store, list and delete a workspace's own keys of model providers. The API key needs the scope admin."""


@provider_keys.command("set")
@click.argument("provider")
@with_inbox
def provider_keys_set(inbox: Inbox, provider: str) -> None:
    """Store a key, read from the terminal or from standard input, in the place of the provider's former one."""
    key = click.prompt("Key", hide_input=True) if sys.stdin.isatty() else sys.stdin.read().strip()
    click.echo(inbox.call("POST", "/v1/provider_keys", json={"provider": provider, "key": key})["id"])


@provider_keys.command("list")
@as_json
@with_inbox
def provider_keys_list(inbox: Inbox, as_json: bool) -> None:
    """List the providers for which the workspace has a key of its own."""
    rows = inbox.listed("/v1/provider_keys")
    name = names_in(inbox, [] if as_json else rows, "created_by")
    show([{field: row[field] for field in SHOWN} | {"created_by": name(row["created_by"])} for row in rows], as_json)


@provider_keys.command("delete")
@click.argument("key_id", type=IdOf("provider key"))
@with_inbox
def provider_keys_delete(inbox: Inbox, key_id: str) -> None:
    """Delete a key (pkey_...). The operator's key holds again, if there is one."""
    inbox.call("DELETE", f"/v1/provider_keys/{key_id}")
    click.echo(f"{key_id} is deleted.")
