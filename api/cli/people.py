"""`assent people`: who may sign in to a workspace, and as what."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from api.cli.main import as_json, caller, data_dir, database_errors, find_workspace, show, use, workspace

if TYPE_CHECKING:
    from models.database.rows import Db

ROLES = ("admin", "developer", "approver", "viewer")


@click.group()
def people() -> None:
    """People: who may sign in, and as what."""


@people.command("invite")
@click.argument("email")
@click.option("--role", type=click.Choice(ROLES), help="In the workspace.  [default: approver]")
@click.option("--admin", is_flag=True, help="The same as --role admin.")
@click.option("--group", "group_ids", multiple=True, metavar="GRP", help="A group to enter, grp_...; several times for several.")
@workspace
@data_dir
def people_invite(email: str, role: str | None, admin: bool, group_ids: tuple[str, ...], workspace: str, data_dir: Path) -> None:
    """Invite a person. Prints a link that works once."""
    if admin and role not in {None, "admin"}:
        raise click.UsageError(f"--admin and --role {role} contradict each other: give one of them")
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.invitation import Invitation, link_of

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            new_role = "admin" if admin else role or "approver"
            row, secret = Invitation.create(db, email, new_role, group_ids=group_ids, by=caller(workspace_id))  # type: ignore[arg-type]
    click.echo(f"{row.email} becomes {row.role} by this link. It works once, until {row.expires_at:%Y-%m-%d %H:%M} UTC:", err=True)
    click.echo(link_of(secret))


@people.command("link")
@click.argument("person")
@workspace
@data_dir
def people_link(person: str, workspace: str, data_dir: Path) -> None:
    """Give a person (address or id) a new link, for example after the loss of a passkey."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.invitation import Invitation, link_of

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            row, secret = Invitation.renew(db, find_person(db, person), by=caller(workspace_id))
    click.echo(f"It ends all earlier ways in of {row.email}. It works once, until {row.expires_at:%Y-%m-%d %H:%M} UTC:", err=True)
    click.echo(link_of(secret))


@people.command("list")
@workspace
@data_dir
@as_json
def people_list(workspace: str, data_dir: Path, as_json: bool) -> None:
    """List the people of a workspace."""
    use(data_dir)
    from models.database.transactions import transaction

    with database_errors(), transaction(find_workspace(workspace)) as db:
        rows = db.rows(_LIST)
    show([dict(zip(_SHOWN, row, strict=True)) for row in rows], as_json)


@people.command("deactivate")
@click.argument("person")
@workspace
@data_dir
def people_deactivate(person: str, workspace: str, data_dir: Path) -> None:
    """End a person's role (address or id), and all sign-ins, at once."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.member import Member

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            person_id = find_person(db, person)
            Member.deactivate(db, person_id, by=caller(workspace_id))
    click.echo(f"{person_id} is deactivated.")


@people.group("slack")
def people_slack() -> None:
    """Slack users, and the people in whose names they decide."""


@people_slack.command("list")
@workspace
@data_dir
@as_json
def slack_list(workspace: str, data_dir: Path, as_json: bool) -> None:
    """List the Slack users that decide for a person."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.person import Person
    from models.people.slack_user import SlackUser

    with database_errors(), transaction(find_workspace(workspace)) as db:
        rows = [(row, db.get_one(Person, row.person_id)) for row in SlackUser.linked(db)]
    columns = [
        {
            "id": row.id,
            "team": row.team_id,
            "user": row.slack_id,
            "name": row.name,
            "person": person.email,
            "linked_at": row.linked_at,
        }
        for row, person in rows
    ]
    show(columns, as_json)


@people_slack.command("remove")
@click.argument("slack_user")
@workspace
@data_dir
def slack_remove(slack_user: str, workspace: str, data_dir: Path) -> None:
    """Have a Slack user (slku_...) decide for nobody, at once."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.slack_user import SlackUser

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            SlackUser.unlink(db, slack_user, by=caller(workspace_id))
    click.echo(f"{slack_user} decides for nobody any more.")


def find_person(db: "Db", named: str) -> str:
    """Return the id of a person, by id or e-mail address. Raises NotFound, Invalid."""
    from models.errors import NotFound
    from models.people import person

    person_id = named if named.startswith("user_") else person.find(db, named)
    if person_id is None:
        raise NotFound("user", named)
    return str(person_id)


_SHOWN = ("id", "email", "name", "role", "source", "groups", "status", "added_at")
_LIST = """
    SELECT p.id, p.email, p.name, m.role, m.source, ARRAY(
        SELECT g.name FROM membership s JOIN person_group g ON g.id = s.group_id WHERE s.person_id = p.id ORDER BY g.name
    ), CASE WHEN m.deactivated_at IS NULL THEN 'active' ELSE 'deactivated' END, m.created_at
    FROM member m JOIN person p ON p.id = m.person_id ORDER BY p.email
"""
