"""`assent people` and `assent groups`: links that work once, members and their groups."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from local.conftest import Assent
from outbox.conftest import linked
from outbox.fake_slack import TEAM
from people import acts_of, member
from rows.stage import Stage

from api.cli.main import main
from models.database.transactions import transaction
from models.people.invitation import Invitation
from models.people.slack_user import SlackUser


@pytest.fixture
def assent(stage: Stage, tmp_path: Path) -> Assent:
    """Runs a command in the stage's workspace. Returns the output, or with `ok=False` the error."""

    def run(*words: str, ok: bool = True) -> str:
        options = ["--workspace", stage.workspace_id, "--data-dir", str(tmp_path)]
        result = CliRunner().invoke(main, [*words, *options], catch_exceptions=False)
        assert (result.exit_code == 0) is ok, result.output
        return result.stdout if ok else result.stderr

    return run


def accept(stage: Stage, link: str, name: str) -> None:
    """Accept an invitation by its link."""
    invitation = Invitation.of_secret(link.strip().rpartition("/")[2])
    with transaction(stage.workspace_id) as db:
        Invitation.accept(db, invitation.id, name, None)


def test_people_are_invited_listed_and_deactivated(assent: Assent, stage: Stage) -> None:
    for words, role in ((["--admin"], "admin"), (["--role", "viewer"], "viewer"), ([], "approver")):
        link = assent("people", "invite", f"{role}@example.com", *words)
        assert link.startswith("http://localhost:8000/sign-in/link/")
        accept(stage, link, role.title())
    assert "contradict" in assent("people", "invite", "x@example.com", "--admin", "--role", "viewer", ok=False)
    assert "belongs to a member" in assent("people", "invite", "ADMIN@example.com", ok=False)
    assert "must be an e-mail address" in assent("people", "invite", "anna", ok=False)
    listed = json.loads(assent("people", "list", "--json"))
    assert [(row["email"], row["role"], row["status"]) for row in listed] == [
        ("admin@example.com", "admin", "active"),
        ("approver@example.com", "approver", "active"),
        ("viewer@example.com", "viewer", "active"),
    ]
    assent("people", "deactivate", "viewer@example.com")
    assent("people", "deactivate", listed[1]["id"])
    assert "was not found" in assent("people", "deactivate", "nobody@example.com", ok=False)
    assert [row["status"] for row in json.loads(assent("people", "list", "--json"))] == ["active", "deactivated", "deactivated"]
    accept(stage, assent("people", "invite", "viewer@example.com", "--role", "developer"), "Again")
    back = json.loads(assent("people", "list", "--json"))[2]
    assert (back["id"], back["role"], back["status"]) == (listed[2]["id"], "developer", "active")
    assert acts_of(stage)[0][0].startswith("person:"), "the person at the keyboard"


def test_a_member_gets_a_new_link(assent: Assent, stage: Stage) -> None:
    anna = member(stage, "viewer", email="anna@example.com")
    first = assent("people", "link", "anna@example.com")
    second = assent("people", "link", anna.person_id)
    with pytest.raises(Exception, match="used before"):
        accept(stage, first, "")
    accept(stage, second, "")
    assert "was not found" in assent("people", "link", "ben@example.com", ok=False)


def test_groups_are_made_filled_emptied_and_deleted(assent: Assent, stage: Stage) -> None:
    member(stage, "approver", email="anna@example.com")
    finance = assent("groups", "create", "finance").strip()
    assent("groups", "add", finance, "anna@example.com")
    accept(stage, assent("people", "invite", "ben@example.com", "--group", finance), "Ben")
    [listed] = json.loads(assent("groups", "list", "--json"))
    assert listed == {
        "id": finance,
        "name": "finance",
        "source": "direct",
        "members": ["anna@example.com", "ben@example.com"],
    }
    assent("groups", "remove", finance, "anna@example.com")
    assert json.loads(assent("people", "list", "--json"))[0]["groups"] == []
    assert "was not found" in assent("groups", "remove", finance, "anna@example.com", ok=False)
    assent("groups", "delete", finance)
    assert json.loads(assent("groups", "list", "--json")) == []


def test_slack_users_are_listed_and_removed(assent: Assent, stage: Stage) -> None:
    slack_user_id = linked(stage, member(stage, email="anna@example.com"))
    with transaction(stage.workspace_id) as db:
        SlackUser.of(db, TEAM, "U0NOBODY", "nobody")
    [listed] = json.loads(assent("people", "slack", "list", "--json"))
    assert (listed["id"], listed["team"], listed["user"], listed["person"]) == (slack_user_id, TEAM, "U0ANNA", "anna@example.com")
    assent("people", "slack", "remove", slack_user_id)
    assert "was not found" in assent("people", "slack", "remove", slack_user_id, ok=False)
    assert json.loads(assent("people", "slack", "list", "--json")) == []
    assert acts_of(stage)[-1][1] == "person.slack_unlinked"
