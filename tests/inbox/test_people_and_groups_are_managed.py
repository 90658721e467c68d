"""The page of people: invitations, roles, groups and the halt, by forms without scripts."""

from collections.abc import Callable

import people
import pytest
from inbox.plain import Plain
from rows.stage import Stage

from models.database.transactions import transaction
from models.workspace.halt import Halt


@pytest.fixture
def plain(plain: Plain) -> Plain:
    """An admin whose browser runs no scripts, at the page."""
    plain.open("/inbox/people")
    return plain


def test_a_person_is_invited_and_the_invitation_withdrawn(plain: Plain) -> None:
    plain.follow("Invite a person")
    plain.fill("E-mail address", "new@example.com")
    plain.check("Developer")
    plain.press("Make the invitation")
    assert "/sign-in/link/" in plain.page.one("#link").text
    invitation = plain.page.one("li", "new@example.com")
    assert "developer" in invitation
    plain.press("Withdraw", within=invitation)
    assert not plain.page.all("li", "new@example.com")


def test_a_refused_invitation_says_why(plain: Plain) -> None:
    plain.follow("Invite a person")
    plain.fill("E-mail address", plain.somebody.email)
    plain.press("Make the invitation")
    assert "belongs to a member" in plain.page.one("[role=alert]")


def test_a_role_is_changed_and_a_person_deactivated(plain: Plain, stage: Stage, api: str) -> None:
    ben = people.member(stage, "approver", email="ben@example.com")
    plain.open("/inbox/people")
    plain.fill("Role of ben", "viewer")
    plain.press("Set the role", within=plain.row("ben@example.com"))
    assert plain.row("ben@example.com").one(".tag").text == "viewer"
    plain.press("Deactivate", within=plain.row("ben@example.com"))
    assert not plain.page.all("ul.rows > li", "ben@example.com")
    with ben.client(api) as browser:
        assert browser.get("/inbox").headers["location"].startswith("/sign-in")


def test_a_form_without_a_role_changes_nothing(api: str, stage: Stage) -> None:
    ben = people.member(stage, "approver")
    with people.member(stage, "admin").client(api) as client:
        response = client.post(f"/inbox/people/{ben.person_id}", data={"do": "role"})
    assert response.status_code == 400
    assert "Role: must be chosen." in response.text


def test_a_group_is_created_filled_emptied_and_deleted(plain: Plain) -> None:
    plain.open("/inbox/groups")
    plain.follow("New group")
    plain.fill("Name", "finance")
    plain.press("Create the group")
    plain.fill("Person to add to finance", "admin0, admin0@example.com")
    plain.press("Add")
    assert "admin0@example.com" in plain.page.one(".members li")
    plain.press("Take out")
    assert not plain.page.all(".members li")
    plain.press("Delete")
    assert not plain.page.all("code", "group:grp_")


def test_an_invitation_ends_in_spite_of_a_halt(plain: Plain, stage: Stage) -> None:
    people.invited(stage, email="new@example.com")
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    plain.open("/inbox/people")
    assert "2 days left" in plain.page.one("li", "new@example.com")


def test_a_halt_is_shown_on_every_page_until_it_is_lifted(plain: Plain, visit_without_scripts: Callable[..., Plain]) -> None:
    plain.follow("Halt…")
    plain.fill("Reason", "The refund tool pays twice.")
    plain.press("Halt the workspace")
    viewer = visit_without_scripts("viewer")
    for path in ("", "/sessions", "/grants"):
        viewer.open(f"/inbox{path}")
        assert "Halted by admin0, just now: The refund tool pays twice." in viewer.page.one("#halt")
    plain.open("/inbox/halt")
    plain.press("Lift the halt")
    viewer.open()
    assert "halted" not in viewer.page.one("#halt")
