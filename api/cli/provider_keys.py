"""`assent provider-keys`: a workspace's own keys of model providers."""

import sys
from pathlib import Path

import click

from api.cli.main import as_json, caller, data_dir, database_errors, find_workspace, show, use, workspace

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

    from api.requests.provider_keys import ProviderKeyCreate
    from models.database.transactions import transaction
    from models.errors import Refusal
    from models.workspace.provider_key import ProviderKey

    key = click.prompt("Key", hide_input=True) if sys.stdin.isatty() else sys.stdin.read().strip()
    try:
        body = ProviderKeyCreate(provider=provider, key=key)
    except ValidationError as error:
        fault = error.errors(include_input=False)[0]
        raise click.ClickException(f"{fault['loc'][0]}: {fault['msg'].removeprefix('Value error, ')}") from None
    with database_errors():
        workspace_id = find_workspace(workspace)
        try:
            with transaction(workspace_id) as db:
                row = ProviderKey.store(db, caller(workspace_id), body.provider, body.key)
        except Refusal as refusal:
            raise click.ClickException(str(refusal)) from None
    click.echo(row.id)


@provider_keys.command("list")
@workspace
@data_dir
@as_json
def provider_keys_list(workspace: str, data_dir: Path, as_json: bool) -> None:
    """List the providers for which the workspace has a key of its own."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.workspace.provider_key import of_workspace

    with database_errors(), transaction(find_workspace(workspace)) as db:
        [rows] = db.read(of_workspace())
    show([{name: getattr(row, name) for name in SHOWN} for row in rows], as_json)


@provider_keys.command("delete")
@click.argument("key_id")
@workspace
@data_dir
def provider_keys_delete(key_id: str, workspace: str, data_dir: Path) -> None:
    """Delete a key (pkey_...). The operator's key holds again, if there is one."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.errors import NotFound
    from models.workspace.provider_key import ProviderKey

    with database_errors():
        workspace_id = find_workspace(workspace)
        try:
            with transaction(workspace_id) as db:
                ProviderKey.remove(db, caller(workspace_id), key_id)
        except NotFound as missing:
            raise click.ClickException(str(missing)) from None
    click.echo(f"{key_id} is deleted.")
