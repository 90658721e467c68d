"""The page of a link works as the inbox does: on a phone, in the dark, for screen readers, without JavaScript."""

from collections.abc import Callable

import pytest
from inbox.accessibility import check, check_width
from inbox.linked import Message, message
from inbox.waiting import asked, status
from inbox.windows import Windows
from people import Somebody, member
from playwright.sync_api import Browser, Page, Request, expect
from rows.stage import Stage, call

from models.session.approval import Approval


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage, email="anna@example.com")


@pytest.fixture
def approval(stage: Stage) -> Approval:
    return asked(stage, call(command="git push origin " + "release" * 40))[0]


@pytest.fixture
def sent(stage: Stage, approval: Approval, anna: Somebody) -> Message:
    return message(stage, approval, anna)


Opens = Callable[..., Page]


@pytest.fixture
def opens(windows: Windows, api: str) -> Opens:
    """`opens(path, **options)`: the page in a window of a person who is not signed in."""

    def enter(path: str, **options: object) -> Page:
        page = windows.open(**options).page
        page.goto(api + path)
        return page

    return enter


def test_axe_finds_nothing_on_any_page_and_none_is_wider_than_a_phone(
    opens: Opens, api: str, stage: Stage, anna: Somebody, sent: Message
) -> None:
    member(stage)
    [needs_two] = asked(stage, approval={"required_approvals": 2})
    [over] = asked(stage)
    stage.decide(over, result="deny")
    paths = [sent.path, *(message(stage, row, anna).path for row in (needs_two, over))]
    page = opens(sent.path, phone=True)
    for path in paths:
        page.goto(api + path)
        check(page)
        check_width(page)
    page.goto(api + sent.path)
    page.get_by_text("Deny with a message…").click()
    check(page)
    check_width(page)


def test_a_code_is_typed_and_the_call_runs_without_javascript(
    opens: Opens, stage: Stage, approval: Approval, sent: Message
) -> None:
    page = opens(sent.path, java_script_enabled=False)
    expect(page.get_by_role("heading", level=2)).to_have_text("Decide as anna")
    page.get_by_label("The six-digit code in the message").fill(sent.code)
    page.get_by_role("button", name="Allow once").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Allowed by anna, just now")
    assert status(stage, approval) == "allowed"


def test_a_wrong_code_is_said_beside_the_field(opens: Opens, stage: Stage, approval: Approval, sent: Message) -> None:
    page = opens(sent.path, phone=True)
    code = page.get_by_label("The six-digit code in the message")
    code.fill(sent.wrong_code)
    with page.expect_response(lambda response: response.request.method == "POST") as answer:
        page.get_by_text("Deny with a message…").click()
        page.get_by_label("Message to the agent").fill("Not on a Friday.")
        page.get_by_role("button", name="Deny, and tell the agent this").click()
    assert answer.value.status == 403
    expect(page.get_by_role("alert")).to_contain_text("4 more wrong codes and the link is used up")
    expect(code).to_have_attribute("aria-invalid", "true")
    expect(code).to_have_value("")
    expect(code).to_be_focused()
    expect(code).to_be_in_viewport()
    expect(page.get_by_label("Message to the agent")).to_have_value("Not on a Friday.")
    check(page)
    code.fill(sent.code)
    page.get_by_role("button", name="Deny, and tell the agent this").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Denied by anna")
    assert stage.get(Approval, approval.id).decision == {"result": "deny", "deny_message": "Not on a Friday."}


def test_the_enter_key_decides_nothing(opens: Opens, stage: Stage, approval: Approval, sent: Message) -> None:
    """After the code a person presses Enter by habit, and a form's first button would be Allow."""
    page = opens(sent.path)
    sent_forms: list[str] = []
    page.on("request", lambda request: sent_forms.append(request.method) if request.method == "POST" else None)
    code = page.get_by_label("The six-digit code in the message")
    code.fill(sent.code)
    code.press("Enter")
    page.get_by_role("link", name="Sign in instead").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert page.url.endswith(f"/sign-in?next=%2Finbox%2Fapprovals%2F{approval.id}")
    assert sent_forms == []
    assert status(stage, approval) == "pending"


def test_two_quick_clicks_decide_once_and_show_the_decision(opens: Opens, stage: Stage, approval: Approval, sent: Message) -> None:
    page = opens(sent.path)
    page.get_by_label("The six-digit code in the message").fill(sent.code)
    page.get_by_role("button", name="Allow once").dblclick()
    expect(page.get_by_role("heading", level=1)).to_have_text("Allowed by anna, just now")
    assert len(stage.events(approval.session_id, "approval.decided")) == 1


def test_the_address_leaves_in_no_referer(browser: Browser, api: str, sent: Message) -> None:
    """Neither for the page's own files, nor for the pages that it leads to."""
    context = browser.new_context()
    page = context.new_page()
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))  # noqa: PLW0108 - Playwright cannot call a builtin
    page.goto(api + sent.path)
    page.get_by_role("link", name="Sign in instead").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert len(requests) > 3
    assert [request.url for request in requests if "/link" in request.all_headers().get("referer", "")] == []
    context.close()
