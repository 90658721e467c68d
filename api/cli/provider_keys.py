"""`assent provider-keys`: a workspace's own keys of model providers."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from api.cli.main import as_json, caller, data_dir, database_errors, find_workspace, in_workspace, show, use, workspace

if TYPE_CHECKING:
    from models.audit.principal import Principal
    from models.database.rows import Db

SHOWN = ("id", "provider", "hint", "created_at", "created_by")


@click.group("provider-keys")
def provider_keys() -> None:
    """Store, list and delete a workspace's own keys of model providers."""


@provider_keys.command("set")
@click.argument("provider")
@workspace
@data_dir
def provider_keys_set(provider: str, workspace: str, data_dir: Path) -> None:
    """Store a key, read from the terminal or from standard input, in the place of the provider's former one."""
    use(data_dir)
    from pydantic import ValidationError

    from api.v1.provider_keys.requests import ProviderKeyCreate
    from models.database.transactions import transaction
    from models.workspace.provider_key import ProviderKey

    key = click.prompt("Key", hide_input=True) if sys.stdin.isatty() else sys.stdin.read().strip()
    try:
        body = ProviderKeyCreate(provider=provider, key=key)
    except ValidationError as error:
        fault = error.errors(include_input=False)[0]
        raise click.ClickException(f"{fault['loc'][0]}: {fault['msg'].removeprefix('Value error, ')}") from None
    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            row = ProviderKey.store(db, caller(workspace_id), body.provider, body.key)
    click.echo(row.id)


@provider_keys.command("list")
@in_workspace
@as_json
def provider_keys_list(db: "Db", as_json: bool, **_by: "Principal") -> None:
    """List the providers for which the workspace has a key of its own."""
    from models.workspace.provider_key import of_workspace

    [rows] = db.read(of_workspace())
    show([{name: getattr(row, name) for name in SHOWN} for row in rows], as_json)


@provider_keys.command("delete")
@click.argument("key_id")
@in_workspace
def provider_keys_delete(db: "Db", by: "Principal", key_id: str) -> str:
    """Delete a key (pkey_...). The operator's key holds again, if there is one."""
    from models.workspace.provider_key import ProviderKey

    ProviderKey.remove(db, by, key_id)
    return f"{key_id} is deleted."
