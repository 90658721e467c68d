"""The commands that open the database themselves, since they must work without a running API: the schema, workspaces, and a
workspace's first people and keys. All other commands but `audit` and `secrets` are clients of the API.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from api.cli.main import as_json, data_dir, reason, running_up, show, sure

if TYPE_CHECKING:
    from models.audit.principal import Principal
    from models.database.rows import Db

DATABASE_URLS = ("DATABASE_URL", "DATABASE_SYSTEM_URL", "DATABASE_OWNER_URL")
"""The variables with the URLs of the database, each of another role."""
ROLES = ("admin", "developer", "approver", "viewer")
workspace = click.option("--workspace", default="default", show_default=True, help="Name or id.")


def use(folder: Path) -> None:
    """Use the database of a running `assent up`, unless the environment names another."""
    running = running_up(folder)
    if running and not os.environ.keys() & DATABASE_URLS:
        for name in DATABASE_URLS:
            os.environ[name] = running[name.lower()]
    if "public_url" in running:
        os.environ.setdefault("ASSENT_PUBLIC_URL", running["public_url"])


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


@click.command()
@click.option("--database", "name", default="assent", show_default=True, help="Name of the database.")
def roles(name: str) -> None:
    """Create the database's roles and the database, by `psql` as an administrator. Idempotent.

    psql reads the address and the administrator's password from PGHOST, PGUSER and PGPASSWORD, and the roles' passwords from
    ASSENT_OWNER_PASSWORD, ASSENT_APP_PASSWORD and ASSENT_SYSTEM_PASSWORD. With ASSENT_SCALER_PASSWORD, the role assent_scaler can
    log in, too.
    """
    from deploy.procfile import PROCFILE

    place = ["-d", os.environ.get("PGDATABASE", "postgres"), "-v", f"database={name}"]
    words = ["psql", "-X", "--quiet", *place, "-f", str(PROCFILE.with_name("roles.sql"))]
    try:
        os.execvp(words[0], words)  # noqa: S606 - no input in it
    except FileNotFoundError:
        raise click.ClickException("psql is not installed: install PostgreSQL's client, version 15 or newer") from None


@click.command()
@data_dir
def migrate(data_dir: Path) -> None:
    """Migrate the database's schema to this release. Opens the database itself (DATABASE_OWNER_URL)."""
    from deploy.checks import check_owner
    from deploy.folder import CannotStart
    from deploy.migrate import migrate as run

    use(data_dir)
    url = os.environ.get("DATABASE_OWNER_URL")
    if not url:
        raise click.ClickException("DATABASE_OWNER_URL is not set: set it to the URL of the role assent_owner")
    try:
        check_owner("DATABASE_OWNER_URL", url)
        run(url)
    except CannotStart as refused:
        raise click.ClickException(str(refused)) from refused
    click.echo("The schema is that of this release, or a newer one that serves it.")


@click.group()
def workspaces() -> None:
    """Create and list workspaces, the tenants. Opens the database itself: a key belongs to one workspace and reaches no other."""


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


@click.group()
def database() -> None:
    """People and keys without a running API and without a key: for the first of them, and for whoever lost their way in.

    Opens the database itself. It needs DATABASE_URL and DATABASE_SYSTEM_URL, or a running `assent up`.
    """


@database.command("invite")
@click.argument("email")
@click.option("--role", type=click.Choice(ROLES), default="approver", show_default=True, help="In the workspace.")
@in_workspace
def database_invite(db: "Db", by: "Principal", email: str, role: str) -> tuple[str, str]:
    """Invite a person. Prints a link that works once."""
    from models.people.invitation import Invitation, Invitee, link_of

    row, secret = Invitation.create(db, Invitee(email, role), by=by)  # type: ignore[arg-type]
    note = f"{row.email} becomes {row.role} by this link. It works once, until {row.expires_at:%Y-%m-%d %H:%M} UTC:"
    return note, link_of(secret)


@database.command("link")
@click.argument("person")
@in_workspace
def database_link(db: "Db", by: "Principal", person: str) -> tuple[str, str]:
    """Give a person (address or id) a new link, for example after the loss of a passkey."""
    from models.people.invitation import Invitation, link_of

    row, secret = Invitation.renew(db, _find_person(db, person), by=by)
    note = f"It ends all earlier ways in of {row.email}. It works once, until {row.expires_at:%Y-%m-%d %H:%M} UTC:"
    return note, link_of(secret)


@database.command("confirm")
@click.argument("person")
@in_workspace
def database_confirm(db: "Db", by: "Principal", person: str) -> str:
    """Confirm that a person (address or id) holds their ways to sign in. Ask the person first, not the maker of their link.

    No API key may confirm. An admin may, on the page of people.
    """
    from models.people.confirming import confirm

    person_id = _find_person(db, person)
    confirm(db, person_id, by=by)
    return f"{person_id} is confirmed."


@database.command("erase")
@click.argument("email")
@click.option("--workspace", help="Id or name.  [default: every workspace]")
@reason
@sure
@data_dir
def database_erase(email: str, workspace: str | None, reason: str, yes: bool, data_dir: Path) -> None:
    """Erase the person with this e-mail address, in every workspace. Decisions keep an id.

    After a crash, run it again: it goes on with the workspaces that are left.
    """
    use(data_dir)
    from models.database.transactions import transaction
    from models.operate.personal_data import person as erasing
    from models.people import person

    with database_errors():
        with transaction() as db:
            people = person.everywhere(db, email)
        if workspace:
            workspace_id = find_workspace(workspace)
            people = {one: id_ for one, id_ in people.items() if one == workspace_id}
        if not people:
            raise click.ClickException(f"nobody has the address {email}: it is erased already, or was never known")
        if not yes:
            click.confirm(f"Nothing brings {email} back. Erase the person in {len(people)} workspace(s)?", abort=True)
        for workspace_id, person_id in people.items():
            with transaction(workspace_id) as db:
                erasing.erase(db, person_id, reason, by=caller(workspace_id))
            click.echo(f"{workspace_id}: {person_id} is erased.")


@database.command("key")
@click.argument("name")
@click.option(
    "--scopes", help="Of read, agents, sessions, environment, approvals, reveal, admin, metrics.  [default: the first three]"
)
@in_workspace
def database_key(db: "Db", by: "Principal", name: str, scopes: str | None) -> tuple[str, str]:
    """Create an API key. With the scope admin, `assent keys` creates further ones. The secret is shown once."""
    from models.workspace.api_key import ApiKey, NewKey

    names = frozenset(s.strip() for s in scopes.split(",")) if scopes is not None else None
    row, secret = ApiKey.create(db, NewKey(name, scopes=names), by=by)
    return f"{row.id}: {', '.join(row.scopes)}. This is shown once:", secret


def _find_person(db: "Db", name: str) -> str:
    """Return the id of a person, by id or e-mail address. Raises NotFound, Invalid."""
    from models.errors import NotFound
    from models.people import person

    person_id = name if name.startswith("user_") else person.find(db, name)
    if person_id is None:
        raise NotFound("user", name)
    return str(person_id)
