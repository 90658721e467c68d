"""`assent workspaces` and `assent database` make the first workspace, people and keys, without a running API and without a key."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from own_database import DatabaseUrls
from people import acts_of, member
from rows.stage import Stage

from api.cli.main import main
from models.database.transactions import transaction
from models.people.invitation import Invitation
from models.workspace import key_lookup

OnDatabase = Callable[..., str]


@pytest.fixture
def assent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnDatabase:
    """Runs a command on the database alone. Returns the output, or with `ok=False` the error."""
    monkeypatch.delenv("ASSENT_URL", raising=False)
    monkeypatch.delenv("ASSENT_API_KEY", raising=False)

    def run(*words: str, ok: bool = True) -> str:
        result = CliRunner().invoke(main, [*words, "--data-dir", str(tmp_path)], catch_exceptions=False)
        assert (result.exit_code == 0) is ok, result.output
        return result.stdout if ok else result.stderr

    return run


def test_a_workspace_and_its_first_key_are_made(assent: OnDatabase, clean_database: DatabaseUrls) -> None:
    assert "was not found" in assent("database", "key", "ci", "--workspace", "Support", ok=False)
    workspace = assent("workspaces", "create", "Support").strip()
    assert json.loads(assent("workspaces", "list", "--json")) == [{"id": workspace, "name": "Support"}]
    secret = assent("database", "key", "ci", "--workspace", "Support", "--scopes", "read, admin").strip()
    principal = key_lookup.authenticate(secret, "127.0.0.1")
    assert principal is not None
    assert (principal.workspace_id, principal.scopes) == (workspace, {"read", "admin"})
    assert "scopes: must be one or more of" in assent("database", "key", "x", "--workspace", workspace, "--scopes", "all", ok=False)


def test_the_first_person_is_invited_and_gets_new_links(assent: OnDatabase, stage: Stage) -> None:
    here = ("--workspace", stage.workspace_id)
    link = assent("database", "invite", "anna@example.com", "--role", "admin", *here)
    accept(stage, link)
    assert "must be an e-mail address" in assent("database", "invite", "anna", *here, ok=False)
    assert assent("database", "link", "anna@example.com", *here).startswith("http://localhost:8000/sign-in/link/")
    assert "was not found" in assent("database", "link", "ben@example.com", *here, ok=False)
    assert acts_of(stage)[0][0].startswith("person:"), "the person at the keyboard"


def test_the_operator_confirms_a_person(assent: OnDatabase, stage: Stage) -> None:
    anna = member(stage, "viewer", email="anna@example.com")
    printed = assent("database", "confirm", "anna@example.com", "--workspace", stage.workspace_id)
    assert printed == f"{anna.person_id} is confirmed.\n"


def test_the_operator_erases_a_person_of_all_workspaces(assent: OnDatabase, stage: Stage) -> None:
    other = Stage()
    people = [member(one, "viewer", email="anna@example.com").person_id for one in (stage, other)]
    words = ("database", "erase", "Anna@example.com", "--reason", "Asked.", "--yes")
    assert assent(*words, "--workspace", other.workspace_id) == f"{other.workspace_id}: {people[1]} is erased.\n"
    assert assent(*words) == f"{stage.workspace_id}: {people[0]} is erased.\n"
    assert "nobody has the address" in assent(*words, ok=False)
    assert [act for _, act in acts_of(stage, "person.erased")] == ["person.erased"]


def accept(stage: Stage, link: str) -> None:
    """Accept an invitation by its link."""
    invitation = Invitation.of_secret(link.strip().rpartition("/")[2])
    with transaction(stage.workspace_id) as db:
        Invitation.accept(db, invitation.id, "Anna", None)
