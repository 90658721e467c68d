"""`assent people`: who may sign in to a workspace, and as what."""

from pathlib import Path
from typing import Any

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json, reason, show, show_secret, sure
from api.cli.nouns import IdOf

ROLES = ("admin", "developer", "approver", "viewer")
_USERS = "/v1/organizations/users"


@click.group()
def people() -> None:
    """People: who may sign in, and as what. The API key needs the scope admin, and each scope that it gives to others."""


@people.command("invite")
@click.argument("email")
@click.option("--role", type=click.Choice(ROLES), help="In the workspace.  [default: approver]")
@click.option("--admin", is_flag=True, help="The same as --role admin.")
@click.option(
    "--group", "group_ids", multiple=True, type=IdOf("group"), help="A group to enter, by name or id; several times for several."
)
@as_json
@with_inbox
def people_invite(inbox: Inbox, email: str, role: str | None, as_json: bool, **more: Any) -> None:
    """Invite a person. Prints a link that works once."""
    admin, group_ids = more["admin"], more["group_ids"]
    if admin and role not in {None, "admin"}:
        raise click.UsageError(f"--admin and --role {role} contradict each other: give one of them")
    body = {"email": email, "workspace_role": "admin" if admin else role or "approver", "rbac_group_ids": list(group_ids)}
    row = inbox.call("POST", "/v1/organizations/invites", json=body)
    _print_link(row, f"{row['email']} becomes {row['workspace_role']} by this link.", as_json)


@people.command("link")
@click.argument("person", type=IdOf("person"))
@as_json
@with_inbox
def people_link(inbox: Inbox, person: str, as_json: bool) -> None:
    """Give a person (address or id) a new link, for example after the loss of a passkey."""
    row = inbox.call("POST", f"{_USERS}/{person}/link", json={})
    _print_link(row, f"It ends all earlier ways in of {row['email']}.", as_json)


@people.command("list")
@as_json
@with_inbox
def people_list(inbox: Inbox, as_json: bool) -> None:
    """List the people of the workspace, with their groups."""
    names = {group["id"]: group["name"] for group in inbox.listed("/v1/organizations/rbac_groups")}
    rows = [
        {name: row[name] for name in ("id", "email", "name")}
        | {"role": row["workspace_role"], "source": row["source"]}
        | {"groups": sorted(names.get(group_id, group_id) for group_id in row["rbac_group_ids"]), "added_at": row["added_at"]}
        for row in inbox.listed(_USERS)
    ]
    show(sorted(rows, key=lambda row: str(row["email"])), as_json)


@people.command("deactivate")
@click.argument("person", type=IdOf("person"))
@with_inbox
def people_deactivate(inbox: Inbox, person: str) -> None:
    """End a person's role (address or id), and all sign-ins, at once."""
    inbox.call("DELETE", f"{_USERS}/{person}")
    click.echo(f"{person} is deactivated.")


@people.command("export")
@click.argument("person", type=IdOf("person"))
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Default: standard output.")
@with_inbox
def people_export(inbox: Inbox, person: str, output: Path | None) -> None:
    """Write all that the workspace keeps about a person (address or id), as one JSON object."""
    path = f"{_USERS}/{person}/export"
    with click.open_file(str(output or "-"), "w", encoding="utf-8", atomic=output is not None) as file:
        for piece in inbox.text(path):
            file.write(piece)


@people.command("erase")
@click.argument("person", type=IdOf("person"))
@reason
@sure
@with_inbox
def people_erase(inbox: Inbox, person: str, reason: str, yes: bool) -> None:
    """Erase a person (address or id) from the workspace: name, addresses, every way to sign in. Decisions keep the id."""
    if not yes:
        click.confirm(f"Nothing brings {person} back. Erase the person?", abort=True)
    inbox.call("POST", f"{_USERS}/{person}/erase", json={"reason": reason})
    click.echo(f"{person} is erased.")


@people.group("slack")
def people_slack() -> None:
    """Slack users, and the people in whose names they decide."""


@people_slack.command("list")
@as_json
@with_inbox
def slack_list(inbox: Inbox, as_json: bool) -> None:
    """List the Slack users that decide for a person."""
    rows = inbox.listed("/v1/slack_users")
    show([{name: row[name] for name in ("id", "team_id", "slack_id", "name", "email", "linked_at")} for row in rows], as_json)


@people_slack.command("remove")
@click.argument("slack_user", type=IdOf("Slack user"))
@with_inbox
def slack_remove(inbox: Inbox, slack_user: str) -> None:
    """Have a Slack user (slku_...) decide for nobody, at once."""
    inbox.call("DELETE", f"/v1/slack_users/{slack_user}")
    click.echo(f"{slack_user} decides for nobody any more.")


def _print_link(row: dict[str, Any], note: str, as_json: bool) -> None:
    show_secret(row, "url", f"{note} It works once, until {row['expires_at']}:", as_json)
