"""People belong to the organization. A workspace sees those who have a role in it, and decides about no other workspace's."""

from typing import Any

import psycopg
import pytest
from own_database import DatabaseUrls
from people import member
from psycopg.errors import InsufficientPrivilege
from walls.world import ORGANIZATION, World

from models.audit.principal import system
from models.database.transactions import transaction
from models.people import sign_in
from models.people.member import Member
from models.people.organization import Organization


def rows(url: str, workspace_id: str, text: str, *values: Any) -> list[Any]:
    """What a statement gives to a role that works in a workspace."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT set_config('assent.workspace', %s, false)", [workspace_id])
        cursor = db.execute(text, values)
        return cursor.fetchall() if cursor.description else []


def test_there_is_one_organization_and_nobody_can_add_or_change_one(theirs: World, database_urls: DatabaseUrls) -> None:
    with transaction(theirs.workspace_id) as db:
        assert Organization.id_of(db).startswith("org_")
    for text in (
        "INSERT INTO organization VALUES ('org_2', now())",
        "UPDATE organization SET id = 'org_2'",
        "DELETE FROM organization",
    ):
        with pytest.raises(InsufficientPrivilege):
            rows(database_urls.app, theirs.workspace_id, text)


def test_a_workspace_sees_its_own_people_alone(theirs: World, ours: World, database_urls: DatabaseUrls) -> None:
    for world in (theirs, ours):
        people = sorted([(world.anna.person_id,), (world.dora.person_id,)])
        assert rows(database_urls.app, world.workspace_id, "SELECT id FROM person ORDER BY id") == people
    for nowhere in ("", "wrkspc_none"):
        assert rows(database_urls.app, nowhere, "SELECT id FROM person") == []
    rename = "UPDATE person SET name = 'Mallory' WHERE id = %s RETURNING id"
    assert rows(database_urls.app, ours.workspace_id, rename, theirs.anna.person_id) == []
    with pytest.raises(InsufficientPrivilege):
        rows(database_urls.app, theirs.workspace_id, "UPDATE person SET email = 'mallory@example.com'")
    with pytest.raises(InsufficientPrivilege):
        rows(database_urls.app, theirs.workspace_id, "DELETE FROM person")


def test_an_account_at_an_issuer_is_given_only_to_ones_own_people(theirs: World, ours: World, database_urls: DatabaseUrls) -> None:
    add = "INSERT INTO identity VALUES ('https://issuer.example', 's', %s, now())"
    with pytest.raises(InsufficientPrivilege, match="row-level security"):
        rows(database_urls.app, ours.workspace_id, add, theirs.anna.person_id)
    rows(database_urls.app, theirs.workspace_id, add, theirs.anna.person_id)
    assert rows(database_urls.app, ours.workspace_id, "SELECT subject FROM identity") == []


@pytest.mark.parametrize("table", sorted(ORGANIZATION))
def test_the_sweeps_see_nothing_of_people(clean_database: object, database_urls: DatabaseUrls, table: str) -> None:
    with pytest.raises(InsufficientPrivilege):
        rows(database_urls.system, "", f"SELECT * FROM {table}")


def test_a_person_of_two_workspaces_has_a_role_and_sign_ins_in_each(theirs: World, ours: World) -> None:
    here = member(ours.stage, "admin", email=theirs.anna.email)
    assert here.person_id == theirs.anna.person_id
    there = sign_in.find(theirs.anna.secret)
    assert there
    assert (there.person.role, there.person.workspace_id) == ("approver", theirs.workspace_id)
    with transaction(ours.workspace_id) as db:
        Member.deactivate(db, here.person_id, by=system("test", ours.workspace_id))
    assert sign_in.find(here.secret) is None
    assert sign_in.find(theirs.anna.secret) is not None, "no admin of one workspace locks people out of another"
