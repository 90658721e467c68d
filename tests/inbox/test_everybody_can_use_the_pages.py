"""The pages work on a phone, in the dark, and for screen readers."""

from collections.abc import Callable

import people
import pytest
from inbox.accessibility import check, check_at_desk_and_phone, check_width
from inbox.visitor import Visitor
from inbox.waiting import asked, asks_back, endpoint_with_deliveries, status
from inbox.windows import Windows
from outbox.notified import channel
from playwright.sync_api import expect
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.notices.channel import Channel
from models.notices.notification import Notification
from models.session.approval.deadline import extend
from models.session.approval.row import Approval

FORM = {"type": "object", "properties": {"count": {"type": "integer", "description": "How many"}}, "required": ["count"]}


@pytest.fixture
def anna(stage: Stage) -> people.Somebody:
    """An admin."""
    return people.member(stage, "admin")


@pytest.fixture
def paths(stage: Stage, anna: people.Somebody) -> list[str]:
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
    for who in (None, anna):
        row = channel(stage, who, name="Work", quiet_from="22:00", quiet_until="07:00")
        with transaction(stage.workspace_id) as db:
            Notification.test(db, db.get_one(Channel, row.id))
    cards = [f"/approvals/{row.id}" for row in (bash, edit, question)]
    pages = ["", "?show=all", "?show=decided", *cards, f"{cards[1]}/edit", f"{cards[1]}/edit?as=json", f"{cards[1]}/always"]
    pages += [
        "/sessions",
        "/sessions?tab=attention",
        "/sessions/new",
        f"/sessions/{bash.session_id}",
        "/grants",
        "/people",
        "/keys",
        "/provider-keys",
        "/usage",
        "/channels",
        f"/channels/{row.id}",
        "/workspace/channels",
        "/webhooks",
        f"/webhooks/{endpoint_with_deliveries(stage)}",
        "/audit",
        "/audit/verify",
        "/account",
        *(
            "/settings",
            "/search?q=git",
            "/words",
            "/halt",
            "/views",
            "/denial-reasons",
            "/together?tool=edit",
            "/keys/new",
            "/provider-keys/new",
            "/people/new",
            "/groups",
            "/approvers",
            "/groups/new",
        ),
        *("/usage/new", "/webhooks/new", "/channels/new", "/workspace/channels/new?kind=slack"),
        "/nowhere",
    ]
    return [f"/inbox{page}" for page in pages]


@pytest.mark.parametrize("part", range(4))  # all pages in one test would take too long on a busy machine
def test_axe_finds_nothing_on_any_page_and_none_is_wider_than_a_phone(
    visit: Callable[..., Visitor], anna: people.Somebody, paths: list[str], part: int
) -> None:
    admin = visit("admin", somebody=anna)
    for path in paths[part::4]:
        admin.open(path)
        check_at_desk_and_phone(admin.page)


def test_axe_finds_nothing_around_a_page(admin: Visitor, visit: Callable[..., Visitor]) -> None:
    """Neither in the rail and the dialogs of a desk, nor in the bar and the menu of a phone."""
    admin.open("/inbox/words")
    check(admin.page, frame=True)
    admin.page.keyboard.press("?")
    check(admin.page, frame=True)
    phone = visit("admin", phone=True)
    phone.open("/inbox/words")
    phone.button("More").tap()
    check(phone.page, frame=True)


def test_the_pages_before_the_sign_in_are_for_everybody(windows: Windows, api: str, stage: Stage) -> None:
    page = windows.open(phone=True).page
    for path in ("/sign-in", "/sign-in?next=/inbox/keys", people.invited(stage), "/sign-in/link/none"):
        page.goto(api + path)
        check(page)
        check_width(page)


def test_a_thumb_meets_each_field(visit: Callable[..., Visitor]) -> None:
    phone = visit("admin", phone=True)
    phone.open("/inbox/usage/new")
    fields = phone.page.get_by_role("main").locator("select, input:not([type=hidden]), button")
    heights = fields.evaluate_all("(fields) => fields.map((field) => field.getBoundingClientRect().height)")
    assert len(heights) == 4
    assert min(heights) >= 44


def test_a_thumb_decides(visit: Callable[..., Visitor], stage: Stage) -> None:
    [approval] = asked(stage, call(command="x" * 400))
    phone = visit("approver", phone=True)
    phone.open(f"/inbox/approvals/{approval.id}")
    deny = phone.page.locator("details.deny > summary")
    box = deny.bounding_box()
    assert box
    assert box["height"] >= 44
    assert box["y"] + box["height"] <= 740, "the button is in sight without a swipe"
    check_width(phone.page)
    deny.tap()
    phone.page.locator("details.deny").get_by_role("button", name="Deny", exact=True).tap()
    expect(phone.page.locator("#decided")).to_contain_text("Denied by approver0")
    assert status(stage, approval) == "denied"


def test_the_focus_stays_while_the_page_changes(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage)
    admin.open(f"/inbox/approvals/{approval.id}")
    deny = admin.page.locator("details.deny > summary")
    deny.focus()
    stage.locked(
        approval.session_id,
        lambda locked: extend(locked, locked.db.get_one(Approval, approval.id), 7 * 86_400),
    )
    expect(admin.page.locator("#deadline")).to_contain_text("6 days left")
    expect(deny).to_be_focused()
