"""`assent groups`: sets of people that approvals can name."""

from typing import TYPE_CHECKING

import click

from api.cli.main import as_json, in_workspace, show
from api.cli.people import find_person

if TYPE_CHECKING:
    from models.audit.principal import Principal
    from models.database.rows import Db


@click.group()
def groups() -> None:
    """Groups of people that approvals can name."""


@groups.command("create")
@click.argument("name")
@in_workspace
def groups_create(db: "Db", by: "Principal", name: str) -> str:
    """Make a group. Prints its id."""
    from models.people.group import Group

    return Group.create(db, name, by=by).id


@groups.command("list")
@in_workspace
@as_json
def groups_list(db: "Db", as_json: bool, **_by: "Principal") -> None:
    """List the groups of a workspace with their people."""
    show([dict(zip(_SHOWN, row, strict=True)) for row in db.rows(_LIST)], as_json)


@groups.command("add")
@click.argument("group_id")
@click.argument("person")
@in_workspace
def groups_add(db: "Db", by: "Principal", group_id: str, person: str) -> str:
    """Add a person (address or id) to a group."""
    from models.people.group import Group

    person_id = find_person(db, person)
    Group.add(db, group_id, person_id, by=by)
    return f"{person_id} is in {group_id}."


@groups.command("remove")
@click.argument("group_id")
@click.argument("person")
@in_workspace
def groups_remove(db: "Db", by: "Principal", group_id: str, person: str) -> str:
    """Take a person (address or id) out of a group."""
    from models.people.group import Group

    person_id = find_person(db, person)
    Group.take_out(db, group_id, person_id, by=by)
    return f"{person_id} is not in {group_id} any more."


@groups.command("delete")
@click.argument("group_id")
@in_workspace
def groups_delete(db: "Db", by: "Principal", group_id: str) -> str:
    """Delete a group. Approvals that name it have no approvers in it any more."""
    from models.people.group import Group

    Group.remove(db, group_id, by=by)
    return f"{group_id} is deleted."


_SHOWN = ("id", "name", "source", "members")
_LIST = """
    SELECT g.id, g.name, g.source, ARRAY(
        SELECT p.email FROM membership s JOIN person p ON p.id = s.person_id WHERE s.group_id = g.id ORDER BY p.email
    )
    FROM person_group g ORDER BY g.name, g.id
"""
