"""`assent people`: who may sign in to a workspace, and as what."""

from typing import TYPE_CHECKING

import click

from api.cli.main import as_json, in_workspace, show

if TYPE_CHECKING:
    from models.audit.principal import Principal
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
@in_workspace
def people_invite(
    db: "Db", by: "Principal", email: str, role: str | None, admin: bool, group_ids: tuple[str, ...]
) -> tuple[str, str]:
    """Invite a person. Prints a link that works once."""
    if admin and role not in {None, "admin"}:
        raise click.UsageError(f"--admin and --role {role} contradict each other: give one of them")
    from models.people.invitation import Invitation, link_of

    new_role = "admin" if admin else role or "approver"
    row, secret = Invitation.create(db, email, new_role, group_ids=group_ids, by=by)  # type: ignore[arg-type]
    note = f"{row.email} becomes {row.role} by this link. It works once, until {row.expires_at:%Y-%m-%d %H:%M} UTC:"
    return note, link_of(secret)


@people.command("link")
@click.argument("person")
@in_workspace
def people_link(db: "Db", by: "Principal", person: str) -> tuple[str, str]:
    """Give a person (address or id) a new link, for example after the loss of a passkey."""
    from models.people.invitation import Invitation, link_of

    row, secret = Invitation.renew(db, find_person(db, person), by=by)
    note = f"It ends all earlier ways in of {row.email}. It works once, until {row.expires_at:%Y-%m-%d %H:%M} UTC:"
    return note, link_of(secret)


@people.command("confirm")
@click.argument("person")
@in_workspace
def people_confirm(db: "Db", by: "Principal", person: str) -> str:
    """Confirm that a person (address or id) holds their ways to sign in. Ask the person first, not the maker of their link."""
    from models.people.confirming import confirm

    person_id = find_person(db, person)
    confirm(db, person_id, by=by)
    return f"{person_id} is confirmed."


@people.command("list")
@in_workspace
@as_json
def people_list(db: "Db", as_json: bool, **_by: "Principal") -> None:
    """List the people of a workspace."""
    show([dict(zip(_SHOWN, row, strict=True)) for row in db.rows(_LIST)], as_json)


@people.command("deactivate")
@click.argument("person")
@in_workspace
def people_deactivate(db: "Db", by: "Principal", person: str) -> str:
    """End a person's role (address or id), and all sign-ins, at once."""
    from models.people.member import Member

    person_id = find_person(db, person)
    Member.deactivate(db, person_id, by=by)
    return f"{person_id} is deactivated."


@people.group("slack")
def people_slack() -> None:
    """Slack users, and the people in whose names they decide."""


@people_slack.command("list")
@in_workspace
@as_json
def slack_list(db: "Db", as_json: bool, **_by: "Principal") -> None:
    """List the Slack users that decide for a person."""
    from models.people.person import Person
    from models.people.slack_user import SlackUser

    rows = [
        {
            "id": row.id,
            "team": row.team_id,
            "user": row.slack_id,
            "name": row.name,
            "person": db.get_one(Person, row.person_id).email,
            "linked_at": row.linked_at,
        }
        for row in SlackUser.linked(db)
    ]
    show(rows, as_json)


@people_slack.command("remove")
@click.argument("slack_user")
@in_workspace
def slack_remove(db: "Db", by: "Principal", slack_user: str) -> str:
    """Have a Slack user (slku_...) decide for nobody, at once."""
    from models.people.slack_user import SlackUser

    SlackUser.unlink(db, slack_user, by=by)
    return f"{slack_user} decides for nobody any more."


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
