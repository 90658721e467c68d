"""The inbox as a page opens with an API key, which it keeps no longer and shows no further than whoever has it wants."""

import pytest
from doors.browser import Inbox
from doors.served import Caller, key
from doors.waiting import approval_of
from playwright.sync_api import expect
from rows.stage import Stage

from models.session.tool_call import ToolCall


def test_a_key_opens_it_and_signing_out_closes_it(inbox: Inbox, caller: Caller, waiting: ToolCall) -> None:
    page = inbox.page
    page.goto(f"{inbox.url}/inbox")
    page.get_by_label("API key").fill("sk-assent-mistyped")
    inbox.button("Sign in").click()
    expect(inbox.trouble).to_contain_text("not known here")
    page.get_by_label("API key").fill(caller.headers["x-api-key"])
    inbox.button("Sign in").click()
    expect(inbox.rows).to_have_count(1)
    page.reload()
    expect(inbox.rows).to_have_count(1)
    inbox.button("Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    assert page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()


def test_a_link_s_key_does_not_push_out_who_is_there(inbox: Inbox, caller: Caller, waiting: ToolCall) -> None:
    inbox.enter(caller.headers["x-api-key"])
    expect(inbox.rows).to_have_count(1)
    asked_first: list[str] = []
    inbox.page.on("dialog", lambda dialog: (asked_first.append(dialog.message), dialog.dismiss())[1])
    inbox.page.goto(f"{inbox.url}/inbox#key={key(Stage())}")
    expect(inbox.rows).to_have_count(1)
    inbox.page.reload()
    expect(inbox.rows).to_have_count(1)
    assert len(asked_first) == 1


def test_what_cannot_be_a_key_is_said_to_be_none(inbox: Inbox) -> None:
    inbox.page.goto(f"{inbox.url}/inbox")
    inbox.page.get_by_label("API key").fill("schlüssel")
    inbox.button("Sign in").click()
    expect(inbox.trouble).to_contain_text("no API key")
    inbox.page.goto(f"{inbox.url}/inbox#key=%E0%A4%A")
    inbox.page.reload()
    expect(inbox.page.get_by_label("API key")).to_be_visible()


@pytest.mark.parametrize("stay", [True, False])
def test_only_who_wants_to_stay_signed_in_is_so_in_another_tab(inbox: Inbox, caller: Caller, waiting: ToolCall, stay: bool) -> None:
    page = inbox.page
    page.goto(f"{inbox.url}/inbox")
    page.get_by_label("API key").fill(caller.headers["x-api-key"])
    page.get_by_label("Stay signed in").set_checked(stay)
    inbox.button("Sign in").click()
    expect(inbox.rows).to_have_count(1)
    other = page.context.new_page()
    other.goto(f"{inbox.url}/inbox")
    expect(other.locator("ul.rows > li") if stay else other.get_by_label("API key")).to_be_visible()
    inbox.button("Sign out").click()
    other.reload()
    expect(other.get_by_label("API key")).to_be_visible()


def test_a_link_with_the_key_opens_it_and_the_address_forgets_it(inbox: Inbox, caller: Caller, waiting: ToolCall) -> None:
    inbox.page.goto(f"{inbox.url}/inbox#key={caller.headers['x-api-key']}")
    expect(inbox.rows).to_have_count(1)
    assert inbox.page.url == f"{inbox.url}/inbox#/"
    assert inbox.page.evaluate("history.length") == 2, "the empty tab, and this: nobody comes back to the key"


def test_a_key_that_is_revoked_meanwhile_is_asked_for_again(person: Inbox, waiting: ToolCall) -> None:
    expect(person.rows).to_have_count(1)
    person.page.route("**/v1/**", lambda route: route.continue_(headers=route.request.headers | {"x-api-key": "sk-assent-gone"}))
    expect(person.page.get_by_label("API key")).to_be_visible()
    expect(person.trouble).to_contain_text("revoked")


def test_who_may_only_read_is_told_so(inbox: Inbox, caller: Caller, stage: Stage, waiting: ToolCall) -> None:
    inbox.enter(key(stage, "read"), approval_of(caller, waiting)["id"])
    inbox.button("Allow").click()
    expect(inbox.page.get_by_text("lacks the scope 'approvals'")).to_be_visible()
    assert approval_of(caller, waiting)["status"] == "pending"
