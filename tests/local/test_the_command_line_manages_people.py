"""`assent people` and `assent groups`, by the API: links that work once, members and their groups."""

import json
from pathlib import Path

import pytest
from local.conftest import Assent
from outbox.conftest import linked
from outbox.fake_slack import TEAM
from people import acts_of, member
from rows.stage import Stage

from models.database.transactions import transaction
from models.people.invitation import Invitation
from models.people.slack_user import SlackUser


def accept(stage: Stage, printed: str, name: str) -> None:
    """Accept an invitation by its link, the last line that a command printed."""
    invitation = Invitation.of_secret(printed.strip().rpartition("/")[2])
    with transaction(stage.workspace_id) as db:
        Invitation.accept(db, invitation.id, name, None)


def test_people_are_invited_listed_and_deactivated(assent: Assent, stage: Stage) -> None:
    for words, role in ((["--admin"], "admin"), (["--role", "viewer"], "viewer"), ([], "approver")):
        note, link = assent("people", "invite", f"{role}@example.com", *words).splitlines()
        assert note.startswith(f"{role}@example.com becomes {role} by this link. It works once, until ")
        assert "/sign-in/link/" in link
        accept(stage, link, role.title())
    assert "contradict" in assent("people", "invite", "x@example.com", "--admin", "--role", "viewer", code=2)
    assert "belongs to a member" in assent("people", "invite", "ADMIN@example.com", code=1)
    assert "must be an e-mail address" in assent("people", "invite", "anna", code=1)
    rows = json.loads(assent("people", "list", "--json"))
    assert [(row["email"], row["role"]) for row in rows] == [
        ("admin@example.com", "admin"),
        ("approver@example.com", "approver"),
        ("viewer@example.com", "viewer"),
    ]
    assent("people", "deactivate", "viewer@example.com")
    assent("people", "deactivate", rows[1]["id"])
    assert "no person is named" in assent("people", "deactivate", "nobody@example.com", code=1)
    assert [row["email"] for row in json.loads(assent("people", "list", "--json"))] == ["admin@example.com"]
    accept(stage, assent("people", "invite", "viewer@example.com", "--role", "developer"), "Again")
    _, back = json.loads(assent("people", "list", "--json"))
    assert (back["id"], back["role"]) == (rows[2]["id"], "developer")


def test_a_member_gets_a_new_link(assent: Assent, stage: Stage) -> None:
    anna = member(stage, "viewer", email="anna@example.com")
    first = assent("people", "link", "anna@example.com")
    second = assent("people", "link", anna.person_id)
    with pytest.raises(Exception, match="used before"):
        accept(stage, first, "")
    accept(stage, second, "")
    assert "no person is named" in assent("people", "link", "ben@example.com", code=1)


def test_groups_are_made_filled_emptied_and_deleted(assent: Assent, stage: Stage) -> None:
    member(stage, "approver", email="anna@example.com")
    finance = assent("groups", "create", "finance").strip()
    assent("groups", "add", finance, "anna@example.com")
    accept(stage, assent("people", "invite", "ben@example.com", "--group", finance), "Ben")
    [row] = json.loads(assent("groups", "list", "--json"))
    assert row == {"id": finance, "name": "finance", "source": "direct", "members": ["anna@example.com", "ben@example.com"]}
    assent("groups", "remove", finance, "anna@example.com")
    assert [row["groups"] for row in json.loads(assent("people", "list", "--json"))] == [[], ["finance"]]
    assert "was not found" in assent("groups", "remove", finance, "anna@example.com", code=1)
    assent("groups", "delete", finance)
    assert json.loads(assent("groups", "list", "--json")) == []


def test_people_are_exported_and_erased(assent: Assent, stage: Stage, tmp_path: Path) -> None:
    anna = member(stage, email="anna@example.com")
    assert json.loads(assent("people", "export", "anna@example.com"))["profile"]["id"] == anna.person_id
    file = tmp_path / "anna.json"
    assent("people", "export", anna.person_id, "--output", str(file))
    assert json.loads(file.read_text("utf-8"))["profile"]["email"] == "anna@example.com"
    assent("people", "deactivate", "anna@example.com")
    assert "Missing option '--reason'" in assent("people", "erase", "anna@example.com", "--yes", code=2)
    assert "Aborted" in assent("people", "erase", "anna@example.com", "--reason", "Asked.", code=1)
    assert assent("people", "erase", "anna@example.com", "--reason", "Asked.", "--yes") == f"{anna.person_id} is erased.\n"
    assert "no person is named" in assent("people", "export", "anna@example.com", code=1)


def test_slack_users_are_listed_and_removed(assent: Assent, stage: Stage) -> None:
    slack_user_id = linked(stage, member(stage, email="anna@example.com"))
    with transaction(stage.workspace_id) as db:
        SlackUser.of(db, TEAM, "U0NOBODY", "nobody")
    [row] = json.loads(assent("people", "slack", "list", "--json"))
    assert (row["id"], row["team_id"], row["slack_id"], row["email"]) == (slack_user_id, TEAM, "U0ANNA", "anna@example.com")
    assent("people", "slack", "remove", slack_user_id)
    assert "was not found" in assent("people", "slack", "remove", slack_user_id, code=1)
    assert json.loads(assent("people", "slack", "list", "--json")) == []
    assert acts_of(stage)[-1][1] == "person.slack_unlinked"
