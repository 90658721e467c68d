"""The page of a link works as the inbox does: on a phone, in the dark, for screen readers, without JavaScript."""

from collections.abc import Callable

import pytest
from inbox.accessibility import check, check_width
from inbox.linked import Message, new_message
from inbox.waiting import asked, status
from inbox.windows import Windows
from people import Somebody, member
from playwright.sync_api import Browser, Page, Request, expect
from rows.stage import Stage, call

from models.session.approval.row import Approval


@pytest.fixture
def approval(stage: Stage) -> Approval:
    return asked(stage, call(command="git push origin " + "release" * 40))[0]


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(windows: Windows, api: str) -> OpenPage:
    """`open_page(path, **options)`: the page in a window of a person who is not signed in."""

    def go_to(path: str, **options: object) -> Page:
        page = windows.open(**options).page
        page.goto(api + path)
        return page

    return go_to


def test_axe_finds_nothing_on_any_page_and_none_is_wider_than_a_phone(
    open_page: OpenPage, api: str, stage: Stage, anna: Somebody, message: Message
) -> None:
    member(stage)
    [needs_two] = asked(stage, approval={"required_approvals": 2})
    [decided] = asked(stage)
    stage.decide(decided, result="deny")
    paths = [message.path, *(new_message(stage, row, anna).path for row in (needs_two, decided))]
    page = open_page(message.path, phone=True)
    for path in paths:
        page.goto(api + path)
        check(page)
        check_width(page)
    page.goto(api + message.path)
    page.get_by_text("Deny with a message…").click()
    check(page)
    check_width(page)


def test_a_code_is_typed_and_the_call_runs_without_javascript(
    open_page: OpenPage, stage: Stage, approval: Approval, message: Message
) -> None:
    page = open_page(message.path, java_script_enabled=False)
    expect(page.get_by_role("heading", level=2)).to_have_text("Decide as anna")
    page.get_by_label("The six-digit code in the message").fill(message.code)
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator("#outcome")).to_contain_text("Allowed by anna, just now. Allowed, waiting for a worker")
    expect(page.locator(".evidence")).to_contain_text("git push origin")
    assert status(stage, approval) == "allowed"


def test_a_wrong_code_is_reported_beside_the_field(open_page: OpenPage, stage: Stage, approval: Approval, message: Message) -> None:
    page = open_page(message.path, phone=True)
    code = page.get_by_label("The six-digit code in the message")
    code.fill(message.wrong_code)
    with page.expect_response(lambda each: each.request.method == "POST") as response:
        page.get_by_text("Deny with a message…").click()
        page.get_by_label("Message to the agent").fill("Not on a Friday.")
        page.get_by_role("button", name="Deny, and tell the agent this").click()
    assert response.value.status == 403
    expect(page.get_by_role("alert")).to_contain_text("4 more wrong codes and the link is used up")
    expect(code).to_have_attribute("aria-invalid", "true")
    expect(code).to_have_value("")
    expect(code).to_be_focused()
    expect(code).to_be_in_viewport()
    expect(page.get_by_label("Message to the agent")).to_have_value("Not on a Friday.")
    check(page)
    code.fill(message.code)
    page.get_by_role("button", name="Deny, and tell the agent this").click()
    expect(page.locator("#outcome")).to_contain_text("Denied by anna")
    assert stage.get(Approval, approval.id).decision == {"result": "deny", "deny_message": "Not on a Friday."}


def test_the_enter_key_decides_nothing(open_page: OpenPage, stage: Stage, approval: Approval, message: Message) -> None:
    """After the code a person presses Enter by habit, and a form's first button would be Allow."""
    page = open_page(message.path)
    forms: list[str] = []
    page.on("request", lambda request: forms.append(request.method) if request.method == "POST" else None)
    code = page.get_by_label("The six-digit code in the message")
    code.fill(message.code)
    code.press("Enter")
    page.get_by_role("link", name="Sign in instead").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert page.url.endswith(f"/sign-in?next=%2Finbox%2Fapprovals%2F{approval.id}")
    assert forms == []
    assert status(stage, approval) == "pending"


def test_two_quick_clicks_decide_once_and_show_the_decision(
    open_page: OpenPage, stage: Stage, approval: Approval, message: Message
) -> None:
    page = open_page(message.path)
    page.get_by_label("The six-digit code in the message").fill(message.code)
    page.get_by_role("button", name="Allow once").dblclick()
    expect(page.locator("#outcome")).to_contain_text("Allowed by anna, just now")
    assert len(stage.events(approval.session_id, "approval.decided")) == 1
    check(page)


def test_the_address_leaves_in_no_referer(browser: Browser, api: str, message: Message) -> None:
    """Neither for the page's own files, nor for the pages that it links to."""
    page = browser.new_context().new_page()
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))  # noqa: PLW0108 - Playwright cannot call a builtin
    page.goto(api + message.path)
    page.get_by_role("link", name="Sign in instead").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert len(requests) > 3
    assert [request.url for request in requests if "/link" in request.all_headers().get("referer", "")] == []
    page.context.close()
