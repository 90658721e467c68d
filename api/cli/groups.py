"""`assent groups`: sets of people that approvals can name."""

import json
from urllib.parse import quote

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json, show
from api.cli.nouns import IdOf

_GROUPS = "/v1/organizations/rbac_groups"


@click.group()
def groups() -> None:
    """Groups of people that approvals can name. The API key needs the scope admin."""


@groups.command("create")
@click.argument("name")
@as_json
@with_inbox
def groups_create(inbox: Inbox, name: str, as_json: bool) -> None:
    """Make a group. Prints its id."""
    row = inbox.call("POST", _GROUPS, json={"name": name})
    click.echo(json.dumps(row, indent=1) if as_json else row["id"])


@groups.command("list")
@as_json
@with_inbox
def groups_list(inbox: Inbox, as_json: bool) -> None:
    """List the groups of the workspace with their people."""
    rows = [{name: row[name] for name in ("id", "name", "source")} for row in inbox.listed(_GROUPS)]
    for row in rows:
        row["members"] = sorted(member["email"] for member in inbox.listed(f"{_GROUPS}/{quote(row['id'])}/members"))
    show(sorted(rows, key=lambda row: str(row["name"])), as_json)


@groups.command("add")
@click.argument("group_id", type=IdOf("group"))
@click.argument("person", type=IdOf("person"))
@with_inbox
def groups_add(inbox: Inbox, group_id: str, person: str) -> None:
    """Add a person (address or id) to a group."""
    inbox.call("POST", f"{_GROUPS}/{group_id}/members", json={"user_id": person})
    click.echo(f"{person} is in {group_id}.")


@groups.command("remove")
@click.argument("group_id", type=IdOf("group"))
@click.argument("person", type=IdOf("person"))
@with_inbox
def groups_remove(inbox: Inbox, group_id: str, person: str) -> None:
    """Take a person (address or id) out of a group."""
    inbox.call("DELETE", f"{_GROUPS}/{group_id}/members/{person}")
    click.echo(f"{person} is not in {group_id} any more.")


@groups.command("delete")
@click.argument("group_id", type=IdOf("group"))
@with_inbox
def groups_delete(inbox: Inbox, group_id: str) -> None:
    """Delete a group. Approvals that name it have no approvers in it any more."""
    inbox.call("DELETE", f"{_GROUPS}/{group_id}")
    click.echo(f"{group_id} is deleted.")
