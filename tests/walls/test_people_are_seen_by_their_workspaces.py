"""A person belongs to one workspace, which alone sees and changes the person. Nothing tells it of people of other workspaces."""

import pytest
from own_database import DatabaseUrls
from people import member
from psycopg.errors import ForeignKeyViolation, InsufficientPrivilege
from walls.world import ORGANIZATION, World, rows

from models.audit.principal import system
from models.database.transactions import transaction
from models.people import sign_in
from models.people.member import Member
from models.people.organization import Organization


def test_there_is_one_organization_and_nobody_can_add_or_change_one(theirs: World, database_urls: DatabaseUrls) -> None:
    with transaction(theirs.workspace_id) as db:
        assert Organization.id_of(db).startswith("org_")
    for text in (
        "INSERT INTO organization VALUES ('org_2', now())",
        "UPDATE organization SET id = 'org_2'",
        "DELETE FROM organization",
    ):
        with pytest.raises(InsufficientPrivilege):
            rows(database_urls.app, text, workspace=theirs.workspace_id)


def test_a_workspace_sees_its_own_people_alone(theirs: World, ours: World, database_urls: DatabaseUrls) -> None:
    for world in (theirs, ours):
        people = sorted([(world.anna.person_id,), (world.dora.person_id,)])
        assert rows(database_urls.app, "SELECT id FROM person ORDER BY id", workspace=world.workspace_id) == people
    for nowhere in ("", "wrkspc_none"):
        assert rows(database_urls.app, "SELECT id FROM person", workspace=nowhere) == []
    rename = "UPDATE person SET name = 'Mallory' WHERE id = %s RETURNING id"
    assert rows(database_urls.app, rename, theirs.anna.person_id, workspace=ours.workspace_id) == []
    forget = "SELECT assent_forget_person(%s, 'Mallory', now())"
    rows(database_urls.app, forget, theirs.anna.person_id, workspace=ours.workspace_id)
    unchanged = "SELECT email FROM person WHERE id = %s AND erased_at IS NULL"
    assert rows(database_urls.app, unchanged, theirs.anna.person_id, workspace=theirs.workspace_id) == [(theirs.anna.email,)]
    with pytest.raises(InsufficientPrivilege):
        rows(database_urls.app, "UPDATE person SET email = 'mallory@example.com'", workspace=theirs.workspace_id)
    with pytest.raises(InsufficientPrivilege):
        rows(database_urls.app, "DELETE FROM person", workspace=theirs.workspace_id)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO identity VALUES (%s, 'https://issuer.example', 's', %s, now())",
        "INSERT INTO member (workspace_id, person_id, role, created_at) VALUES (%s, %s, 'admin', now())",
    ],
)
def test_an_account_or_a_role_can_only_be_given_to_own_people(
    theirs: World, ours: World, database_urls: DatabaseUrls, text: str
) -> None:
    with pytest.raises(ForeignKeyViolation):
        rows(database_urls.app, text, ours.workspace_id, theirs.anna.person_id, workspace=ours.workspace_id)
    with pytest.raises(InsufficientPrivilege, match="row-level security"):
        rows(database_urls.app, text, theirs.workspace_id, theirs.anna.person_id, workspace=ours.workspace_id)


@pytest.mark.parametrize("table", sorted(ORGANIZATION))
def test_the_sweeps_see_nothing_of_people(clean_database: object, database_urls: DatabaseUrls, table: str) -> None:
    with pytest.raises(InsufficientPrivilege):
        rows(database_urls.system, f"SELECT * FROM {table}", workspace="")


def test_a_human_being_in_two_workspaces_is_a_person_of_each(theirs: World, ours: World) -> None:
    here = member(ours.stage, "admin", email=theirs.anna.email)
    assert here.person_id != theirs.anna.person_id
    there = sign_in.find(theirs.anna.secret)
    assert there
    assert (there.person.role, there.person.workspace_id) == ("approver", theirs.workspace_id)
    member(ours.stage, "admin")  # a workspace keeps an admin
    with transaction(ours.workspace_id) as db:
        Member.deactivate(db, here.person_id, by=system("test", ours.workspace_id))
    assert sign_in.find(here.secret) is None
    assert sign_in.find(theirs.anna.secret) is not None, "an admin of one workspace locks nobody out of another"
