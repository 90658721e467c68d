"""`assent groups`: sets of people that approvals can name."""

from pathlib import Path

import click

from api.cli.main import as_json, caller, data_dir, database_errors, find_workspace, show, use, workspace
from api.cli.people import find_person


@click.group()
def groups() -> None:
    """Groups of people that approvals can name."""


@groups.command("create")
@click.argument("name")
@workspace
@data_dir
def groups_create(name: str, workspace: str, data_dir: Path) -> None:
    """Make a group. Prints its id."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.group import Group

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            row = Group.create(db, name, by=caller(workspace_id))
    click.echo(row.id)


@groups.command("list")
@workspace
@data_dir
@as_json
def groups_list(workspace: str, data_dir: Path, as_json: bool) -> None:
    """List the groups of a workspace with their people."""
    use(data_dir)
    from models.database.transactions import transaction

    with database_errors(), transaction(find_workspace(workspace)) as db:
        rows = db.rows(_LIST)
    show([dict(zip(_SHOWN, row, strict=True)) for row in rows], as_json)


@groups.command("add")
@click.argument("group_id")
@click.argument("person")
@workspace
@data_dir
def groups_add(group_id: str, person: str, workspace: str, data_dir: Path) -> None:
    """Add a person (address or id) to a group."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.group import Group

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            person_id = find_person(db, person)
            Group.add(db, group_id, person_id, by=caller(workspace_id))
    click.echo(f"{person_id} is in {group_id}.")


@groups.command("remove")
@click.argument("group_id")
@click.argument("person")
@workspace
@data_dir
def groups_remove(group_id: str, person: str, workspace: str, data_dir: Path) -> None:
    """Take a person (address or id) out of a group."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.group import Group

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            person_id = find_person(db, person)
            Group.take_out(db, group_id, person_id, by=caller(workspace_id))
    click.echo(f"{person_id} is not in {group_id} any more.")


@groups.command("delete")
@click.argument("group_id")
@workspace
@data_dir
def groups_delete(group_id: str, workspace: str, data_dir: Path) -> None:
    """Delete a group. Approvals that name it have no approvers in it any more."""
    use(data_dir)
    from models.database.transactions import transaction
    from models.people.group import Group

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            Group.remove(db, group_id, by=caller(workspace_id))
    click.echo(f"{group_id} is deleted.")


_SHOWN = ("id", "name", "source", "members")
_LIST = """
    SELECT g.id, g.name, g.source, ARRAY(
        SELECT p.email FROM membership s JOIN person p ON p.id = s.person_id WHERE s.group_id = g.id ORDER BY p.email
    )
    FROM person_group g ORDER BY g.name, g.id
"""
