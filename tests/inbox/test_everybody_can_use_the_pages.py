"""The pages work on a phone, in the dark, and for screen readers."""

from collections.abc import Callable

import people
import pytest
from axe_playwright_python.sync_playwright import Axe
from inbox.visitor import Visitor
from inbox.waiting import asked, asks_back, delivered, status
from playwright.sync_api import Browser, expect
from rows.stage import Stage, call

from models.session.approval import Approval
from models.session.approval_deadline import extend

FORM = {"type": "object", "properties": {"count": {"type": "integer", "description": "How many"}}, "required": ["count"]}


@pytest.fixture
def paths(stage: Stage) -> list[str]:
    """Every page, with something on it."""
    bash, edit, _read = asked(
        stage,
        call(command="git push origin main"),
        call("edit", file_path="src/a.py", old_string="a = 1", new_string="a = 2"),
        call("read", file_path="x"),
        bash="always_ask",
        edit="always_ask",
        read="always_ask",
    )
    question = asks_back(stage, {"who": {"message": "For whom?", "schema": FORM}})
    stage.decide(bash, result="allow", scope="always", match="tool")
    cards = [f"/approvals/{row.id}" for row in (bash, edit, question)]
    pages = ["", "?show=all", "?show=decided", *cards, f"{cards[1]}/edit", f"{cards[1]}/edit?as=json", f"{cards[1]}/always"]
    pages += [
        "/sessions",
        f"/sessions/{bash.session_id}",
        "/grants",
        "/people",
        "/keys",
        "/provider-keys",
        "/usage",
        "/webhooks",
        f"/webhooks/{delivered(stage)}",
        "/audit",
        "/audit/verify",
        "/account",
        "/nowhere",
    ]
    return [f"/inbox{page}" for page in pages]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(admin: Visitor, paths: list[str], theme: str) -> None:
    admin.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    for path in paths:
        admin.open(path)
        found = Axe().run(admin.page).response["violations"]
        assert not found, f"{path}: {[(one['id'], [node['html'][:200] for node in one['nodes']]) for one in found]}"


def test_no_page_is_wider_than_a_phone(visit: Callable[..., Visitor], paths: list[str]) -> None:
    phone = visit("admin", phone=True)
    for path in paths:
        phone.open(path)
        width = phone.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, f"{path} is {width} wide"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_before_the_sign_in_are_for_everybody(browser: Browser, api: str, stage: Stage, theme: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    for path in ("/sign-in", "/sign-in?next=/inbox/keys", people.invited(stage), "/sign-in/link/none"):
        page.goto(api + path)
        violations = Axe().run(page).response["violations"]
        assert not violations, f"{path}: {[(one['id'], [node['html'][:200] for node in one['nodes']]) for one in violations]}"
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    context.close()


def test_a_thumb_decides(visit: Callable[..., Visitor], stage: Stage) -> None:
    [approval] = asked(stage, call(command="x" * 400))
    phone = visit("approver", phone=True)
    phone.open(f"/inbox/approvals/{approval.id}")
    deny = phone.page.locator(".primary").get_by_role("button", name="Deny")
    box = deny.bounding_box()
    assert box
    assert box["height"] >= 44
    assert box["y"] + box["height"] <= 740, "it is in sight without a swipe"
    deny.tap()
    expect(phone.page.locator("#decided")).to_contain_text("Denied by approver0")
    assert status(stage, approval) == "denied"


def test_the_focus_stays_where_it_is_while_the_page_changes(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage)
    admin.open(f"/inbox/approvals/{approval.id}")
    deny = admin.page.locator(".primary").get_by_role("button", name="Deny")
    deny.focus()
    stage.locked(
        approval.session_id,
        lambda db, session: extend(db, session, db.get_one(Approval, approval.id), stage.principal, 7 * 86_400),
    )
    expect(admin.page.locator("#deadline")).to_contain_text("6 days left")
    expect(deny).to_be_focused()
