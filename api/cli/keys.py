"""`assent keys`: API keys, with their scopes, networks and expiry."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from api.cli.main import as_json, in_workspace, show

if TYPE_CHECKING:
    from models.audit.principal import Principal
    from models.database.rows import Db

SHOWN = (
    "id",
    "name",
    "status",
    "scopes",
    "environment_id",
    "allowed_cidrs",
    "hint",
    "created_by",
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
@click.option("--scopes", help="Of read, agents, sessions, environment, approvals, reveal, admin.  [default: read,agents,sessions]")
@click.option("--environment", help="Bind the key to the worker of this self-hosted environment (env_...).")
@click.option("--expires-in-days", type=click.FloatRange(0, 3660, min_open=True), help="Default: the key never expires.")
@click.option("--allow", "networks", multiple=True, metavar="CIDR", help="Allow only this network. Repeat it for several networks.")
@in_workspace
def keys_create(
    db: "Db",
    by: "Principal",
    name: str,
    scopes: str | None,
    environment: str | None,
    expires_in_days: float | None,
    networks: tuple[str, ...],
) -> tuple[str, str]:
    """Create a key. Its secret is shown once."""
    from models.database import clock
    from models.workspace.api_key import ApiKey

    row, secret = ApiKey.create(
        db,
        workspace_id=db.workspace_id,
        name=name,
        scopes=frozenset(s.strip() for s in scopes.split(",")) if scopes is not None else None,
        environment_id=environment,
        expires_at=clock.now(db) + timedelta(days=expires_in_days) if expires_in_days else None,
        allowed_cidrs=networks or None,
        by=by,
    )
    limits = [
        f"in {environment} only" if environment else "",
        f"from {', '.join(row.allowed_cidrs)}" if row.allowed_cidrs else "",
        f"until {row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at else "",
    ]
    return f"{row.id}: {', '.join([*row.scopes, *filter(None, limits)])}. This is shown once:", secret


@keys.command("list")
@in_workspace
@as_json
def keys_list(db: "Db", as_json: bool, **_by: "Principal") -> None:
    """List a workspace's keys. `created_by` is null for keys that were made here; four eyes exclude nobody for them."""
    from models.database import clock
    from models.workspace.api_key import ApiKey

    rows, now = db.find(ApiKey, "ORDER BY id"), clock.now(db)
    computed = [{"status": row.status(now), "created_by": f"user:{row.makers[0]}" if row.makers else None} for row in rows]
    show(
        [{name: more.get(name, getattr(row, name, None)) for name in SHOWN} for row, more in zip(rows, computed, strict=True)],
        as_json,
    )


@keys.command("rotate")
@click.argument("key_id")
@click.option(
    "--overlap-hours", type=click.FloatRange(0, 8784), default=24, show_default=True, help="How long the old key stays valid."
)
@in_workspace
def keys_rotate(db: "Db", by: "Principal", key_id: str, overlap_hours: float) -> tuple[str, str]:
    """Replace a key by a new one with the same scopes and limits. The new secret is shown once."""
    from models.workspace.api_key import ApiKey

    row, secret = ApiKey.rotate(db, key_id, overlap=timedelta(hours=overlap_hours), by=by)
    return f"{row.id} replaces {key_id}, which stays valid for {overlap_hours:g} more hours. This is shown once:", secret


@keys.command("revoke")
@click.argument("key_id")
@in_workspace
def keys_revoke(db: "Db", by: "Principal", key_id: str) -> str:
    """Revoke a key for good. Takes effect everywhere within a few seconds."""
    from models.workspace.api_key import ApiKey

    ApiKey.revoke(db, key_id, by=by)
    return f"{key_id} is revoked."
