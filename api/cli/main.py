"""The command `assent`. Each command imports its modules when it runs, so that the others start quickly."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from models import DISTRIBUTION

if TYPE_CHECKING:
    from models.audit.principal import Principal

data_dir = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".assent"),
    envvar="ASSENT_DATA_DIR",
    show_default=True,
    help="The folder with the data of `assent up`.",
)
workspace = click.option("--workspace", default="default", show_default=True, help="Name or id.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

_HERE = (
    *(
        "approvals",
        "audit",
        "channels",
        "chat",
        "delegations",
        "environment",
        "grants",
        "groups",
        "halt",
        "keys",
        "limits",
        "people",
        "provider-keys",
    ),
    *("secrets", "usage", "webhooks"),
)
ELSEWHERE = {name: f"api.cli.{name.replace('-', '_')}" for name in _HERE} | {
    "models": "workers.providers.cli",  # imported by name, since the API must not import providers
    "tools": "workers.tools.cli",  # likewise tools
}
"""Commands with a file of their own, which is imported when the command runs."""


class Main(click.Group):
    """The command, with the subcommands of `ELSEWHERE`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand."""
        if cmd_name in ELSEWHERE:
            command: click.Command = getattr(import_module(ELSEWHERE[cmd_name]), cmd_name.replace("-", "_"))
            return command
        return super().get_command(ctx, cmd_name)


def _commit() -> str:
    """Return the commit of this image, in words; empty outside of an image."""
    commit = os.environ.get("ASSENT_COMMIT", "")
    return f", commit {commit}" if commit else ""


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name=DISTRIBUTION, prog_name="assent", message=f"%(prog)s, version %(version)s{_commit()}")
def main() -> None:
    """Runs AI agents that must ask a person before they act."""


@main.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port of the API, on 127.0.0.1.")
@data_dir
def up(port: int, data_dir: Path) -> None:
    """Run everything on this machine: database, queue, model, API, workers."""
    from deploy.local import up as run

    sys.exit(run(port, data_dir))


@main.command()
@click.argument("process")
def run(process: str) -> None:
    """Run a process of the Procfile in the place of this one: `web`, `turns`, `tools`, `sweeps`, `deliver`, `beat` or `flower`."""
    from deploy import procfile

    if process not in procfile.lines():
        raise click.BadParameter(f"must be one of {', '.join(procfile.lines())}", param_hint="PROCESS")
    procfile.run(process)


@main.command()
def roles() -> None:
    """Create the database's roles and the database, by `psql` as an administrator. Idempotent.

    psql reads the address and the administrator's password from PGHOST, PGUSER and PGPASSWORD, and the roles' passwords from
    ASSENT_OWNER_PASSWORD, ASSENT_APP_PASSWORD and ASSENT_SYSTEM_PASSWORD.
    """
    from deploy.procfile import PROCFILE

    words = ["psql", "-X", "--quiet", "-d", os.environ.get("PGDATABASE", "postgres"), "-f", str(PROCFILE.with_name("roles.sql"))]
    try:
        os.execvp(words[0], words)  # noqa: S606 - no input in it
    except FileNotFoundError:
        raise click.ClickException("psql is not installed: install PostgreSQL's client, version 15 or newer") from None


@main.command()
@data_dir
def migrate(data_dir: Path) -> None:
    """Migrate the database's schema to this release (DATABASE_OWNER_URL)."""
    from deploy.checks import check_owner
    from deploy.folder import Refused
    from deploy.migrate import migrate as run

    use(data_dir)
    url = os.environ.get("DATABASE_OWNER_URL")
    if not url:
        raise click.ClickException("DATABASE_OWNER_URL is not set: set it to the URL of the role assent_owner")
    try:
        check_owner("DATABASE_OWNER_URL", url)
        run(url)
    except Refused as refused:
        raise click.ClickException(str(refused)) from refused
    click.echo("The schema is that of this release, or a newer one that serves it.")


@main.group()
def workspaces() -> None:
    """Create and list workspaces, the tenants."""


@workspaces.command("create")
@click.argument("name")
@data_dir
def workspaces_create(name: str, data_dir: Path) -> None:
    """Create a workspace."""
    use(data_dir)
    from models.database import ids
    from models.database.transactions import transaction
    from models.workspace.row import Workspace

    workspace_id = ids.new("wrkspc")
    with database_errors(), transaction(workspace_id) as db:
        Workspace.create(db, name, by=caller(workspace_id))
    click.echo(workspace_id)


@workspaces.command("list")
@data_dir
@as_json
def workspaces_list(data_dir: Path, as_json: bool) -> None:
    """List the workspaces."""
    use(data_dir)
    from models.database.transactions import transaction

    with database_errors(), transaction(role="system") as db:
        rows = db.rows("SELECT id, name FROM workspace ORDER BY id")
    show([{"id": workspace_id, "name": name} for workspace_id, name in rows], as_json)


def use(folder: Path) -> None:
    """Use the database of a running `assent up`, unless the environment names another."""
    running = running_up(folder)
    if running and "DATABASE_URL" not in os.environ:
        for name in ("database_url", "database_system_url", "database_owner_url"):
            os.environ[name.upper()] = running[name]
    if "public_url" in running:
        os.environ.setdefault("ASSENT_PUBLIC_URL", running["public_url"])


def running_up(folder: Path) -> dict[str, Any]:
    """Return the addresses and keys of the `assent up` that runs in `folder`; empty if none runs."""
    try:
        running: dict[str, Any] = json.loads((folder / "up.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return running


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn a refusal, and an error of the database, into an error of one line."""
    import psycopg

    from models.errors import Refusal

    try:
        yield
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from refusal
    except psycopg.Error as error:
        message = " ".join(str(error).split())[:300]
        raise click.ClickException(f"the database: {message} (is `assent up` running, or DATABASE_URL set?)") from error


def find_workspace(name: str) -> str:
    """Return a workspace's id. `name` is its name or its id. Raises NotFound."""
    from models.database.transactions import transaction
    from models.errors import NotFound

    with transaction(role="system") as db:
        workspace_id = db.value("SELECT id FROM workspace WHERE id = %(name)s OR name = %(name)s ORDER BY id LIMIT 1", name=name)
    if workspace_id is None:
        raise NotFound("workspace", name)
    return str(workspace_id)


def caller(workspace_id: str) -> "Principal":
    """Return the principal of the person at the terminal, for the audit."""
    from models.audit.principal import operating_person

    return operating_person(workspace_id)


def in_workspace(command: Callable[..., str | tuple[str, str] | None]) -> Callable[..., None]:
    """Pass a transaction in the workspace of `--workspace` to a command as `db`, and the person at the terminal as `by`.

    The command returns what is printed after the commit: a text, or a note for people, on stderr, and a text.
    """

    @workspace
    @data_dir
    @wraps(command)
    def run(workspace: str, data_dir: Path, **more: Any) -> None:
        use(data_dir)
        from models.database.transactions import transaction

        with database_errors():
            workspace_id = find_workspace(workspace)
            with transaction(workspace_id) as db:
                result = command(db=db, by=caller(workspace_id), **more)
        note, text = result if isinstance(result, tuple) else (None, result)
        if note:
            click.echo(note, err=True)
        if text is not None:
            click.echo(text)

    return run


def show(rows: list[dict[str, Any]], as_json: bool, line: Callable[[dict[str, Any]], str] | None = None) -> None:
    """Print the rows as JSON, or each as the text that `line` returns; by default as its values."""
    if as_json:
        click.echo(json.dumps(rows, default=str, indent=1))
        return
    for row in rows:
        click.echo((line or _cells)(row))
    if not rows:
        click.echo("None.", err=True)


def _cells(row: dict[str, Any]) -> str:
    return "  ".join(", ".join(v) if isinstance(v, list) else "-" if v is None else str(v) for v in row.values())


if __name__ == "__main__":
    main()
