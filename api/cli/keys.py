"""`assent keys`: API keys, with their scopes, networks and expiry."""

from datetime import timedelta
from pathlib import Path

import click

from api.cli.main import as_json, caller, data_dir, database_errors, find_workspace, show, use, workspace

SHOWN = (
    "id",
    "name",
    "status",
    "scopes",
    "environment_id",
    "allowed_cidrs",
    "hint",
    "created_at",
    "expires_at",
    "last_used_at",
    "revoked_at",
)


@click.group()
def keys() -> None:
    """Create, list, rotate and revoke API keys."""


@keys.command("create")
@click.argument("name")
@workspace
@click.option("--scopes", help="Of read, agents, sessions, environment, approvals, reveal, admin.  [default: read,agents,sessions]")
@click.option("--environment", help="Bind the key to the worker of this self-hosted environment (env_...).")
@click.option("--expires-in-days", type=click.FloatRange(0, 3660, min_open=True), help="Default: the key never expires.")
@click.option("--allow", "networks", multiple=True, metavar="CIDR", help="Allow only this network. Repeat it for several networks.")
@data_dir
def keys_create(
    name: str,
    workspace: str,
    scopes: str | None,
    environment: str | None,
    expires_in_days: float | None,
    networks: tuple[str, ...],
    data_dir: Path,
) -> None:
    """Create a key. Its secret is shown once."""
    use(data_dir)
    from models.database import clock
    from models.database.transactions import transaction
    from models.workspace.api_key import ApiKey

    scope_set = frozenset(s.strip() for s in scopes.split(",")) if scopes is not None else None
    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            row, secret = ApiKey.create(
                db,
                workspace_id=workspace_id,
                name=name,
                scopes=scope_set,
                environment_id=environment,
                expires_at=clock.now(db) + timedelta(days=expires_in_days) if expires_in_days else None,
                allowed_cidrs=networks or None,
                by=caller(workspace_id),
            )
    limits = [
        f"in {environment} only" if environment else "",
        f"from {', '.join(row.allowed_cidrs)}" if row.allowed_cidrs else "",
        f"until {row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at else "",
    ]
    click.echo(f"{row.id}: {', '.join([*row.scopes, *filter(None, limits)])}. This is shown once:", err=True)
    click.echo(secret)


@keys.command("list")
@workspace
@data_dir
@as_json
def keys_list(workspace: str, data_dir: Path, as_json: bool) -> None:
    """List a workspace's keys."""
    use(data_dir)
    from models.database import clock
    from models.database.transactions import transaction
    from models.workspace.api_key import ApiKey

    with database_errors(), transaction(find_workspace(workspace)) as db:
        rows, now = db.find(ApiKey, "ORDER BY id"), clock.now(db)
    show([{name: row.status(now) if name == "status" else getattr(row, name) for name in SHOWN} for row in rows], as_json)


@keys.command("rotate")
@click.argument("key_id")
@workspace
@click.option(
    "--overlap-hours", type=click.FloatRange(0, 8784), default=24, show_default=True, help="How long the old key stays valid."
)
@data_dir
def keys_rotate(key_id: str, workspace: str, overlap_hours: float, data_dir: Path) -> None:
    """Replace a key by a new one with the same scopes and limits. The new secret is shown once."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.workspace.api_key import ApiKey

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            row, secret = ApiKey.rotate(db, key_id, overlap=timedelta(hours=overlap_hours), by=caller(workspace_id))
    click.echo(f"{row.id} replaces {key_id}, which stays valid for {overlap_hours:g} more hours. This is shown once:", err=True)
    click.echo(secret)


@keys.command("revoke")
@click.argument("key_id")
@workspace
@data_dir
def keys_revoke(key_id: str, workspace: str, data_dir: Path) -> None:
    """Revoke a key for good. Takes effect everywhere within a few seconds."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.workspace.api_key import ApiKey

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            ApiKey.revoke(db, key_id, by=caller(workspace_id))
    click.echo(f"{key_id} is revoked.")
