"""The page of people: invitations, roles, groups and the halt, by forms without scripts."""

from collections.abc import Callable

import people
import pytest
from inbox.visitor import Visitor
from playwright.sync_api import expect
from rows.stage import Stage

from models.database.transactions import transaction
from models.workspace.halt import Halt


@pytest.fixture
def plain(plain: Visitor) -> Visitor:
    """An admin whose browser runs no scripts, at the page."""
    plain.open("/inbox/people")
    return plain


def test_a_person_is_invited_and_the_invitation_withdrawn(plain: Visitor) -> None:
    plain.page.get_by_role("link", name="Invite a person").click()
    plain.page.get_by_label("E-mail address").fill("new@example.com")
    plain.page.get_by_label("Developer").check()
    plain.button("Make the invitation").click()
    assert "/sign-in/link/" in plain.page.locator("#link").inner_text()
    invitation = plain.page.locator("li", has_text="new@example.com")
    expect(invitation).to_contain_text("developer")
    invitation.get_by_role("button").click()
    expect(plain.page.locator("li", has_text="new@example.com")).to_have_count(0)


def test_a_refused_invitation_says_why(plain: Visitor) -> None:
    plain.page.get_by_role("link", name="Invite a person").click()
    plain.page.get_by_label("E-mail address").fill(plain.somebody.email)
    plain.button("Make the invitation").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("belongs to a member")


def test_a_role_is_changed_and_a_person_deactivated(plain: Visitor, stage: Stage, api: str) -> None:
    ben = people.member(stage, "approver", email="ben@example.com")
    plain.open("/inbox/people")
    row = plain.page.locator("ul.rows > li", has_text="ben@example.com")
    row.locator("summary").click()
    row.get_by_label("Role of ben").select_option("viewer")
    row.get_by_role("button", name="Set the role").click()
    expect(row.locator(".tag")).to_have_text("viewer")
    row.locator("summary").click()
    row.get_by_role("button", name="Deactivate").click()
    expect(plain.page.locator("ul.rows > li", has_text="ben@example.com")).to_have_count(0)
    with ben.client(api) as browser:
        assert browser.get("/inbox").headers["location"].startswith("/sign-in")


def test_a_group_is_created_filled_emptied_and_deleted(plain: Visitor) -> None:
    plain.open("/inbox/groups")
    plain.page.get_by_role("link", name="New group").click()
    plain.page.get_by_label("Name").fill("finance")
    plain.button("Create the group").click()
    plain.page.get_by_label("Person to add to finance").select_option("admin0, admin0@example.com")
    plain.page.get_by_role("button", name="Add", exact=True).click()
    expect(plain.page.locator(".members li")).to_contain_text("admin0@example.com")
    plain.button("Take out").click()
    expect(plain.page.locator(".members li")).to_have_count(0)
    plain.button("Delete").click()
    expect(plain.page.locator("code", has_text="group:grp_")).to_have_count(0)


def test_an_invitation_ends_in_spite_of_a_halt(plain: Visitor, stage: Stage) -> None:
    people.invited(stage, email="new@example.com")
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    plain.open("/inbox/people")
    expect(plain.page.locator("li", has_text="new@example.com")).to_contain_text("2 days left")


def test_a_halt_is_shown_on_every_page_until_it_is_lifted(plain: Visitor, visit: Callable[..., Visitor]) -> None:
    plain.page.get_by_role("link", name="Halt…").click()
    plain.page.get_by_label("Reason").fill("The refund tool pays twice.")
    plain.button("Halt the workspace").click()
    viewer = visit("viewer")
    for path in ("", "/sessions", "/grants"):
        viewer.open(f"/inbox{path}")
        expect(viewer.page.locator("#halt")).to_contain_text("Halted by admin0, just now: The refund tool pays twice.")
    plain.open("/inbox/halt")
    plain.button("Lift the halt").click()
    viewer.open()
    expect(viewer.page.locator("#halt")).not_to_contain_text("halted")
