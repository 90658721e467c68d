"""Keys decide, the next card follows, and an allow can be undone for five seconds."""

from datetime import UTC, datetime, timedelta

from inbox.visitor import Visitor
from inbox.waiting import asked, status
from playwright.sync_api import expect
from rows.stage import Stage, call

from models.session.approval.row import Approval


def test_keys_walk_the_list_and_decide(admin: Visitor, stage: Stage) -> None:
    first, second, third = asked(stage, *[call(command=f"echo {n}") for n in range(3)])
    admin.window.control_time()
    admin.open()
    admin.press("jd")
    admin.page.keyboard.press("Enter")
    expect(admin.rows.nth(1)).to_contain_text("Denied by")
    admin.press("ka")
    expect(admin.page.get_by_role("status").get_by_text("Allowing once")).to_be_visible()
    admin.page.clock.run_for(5100)
    expect(admin.rows.first).to_contain_text("Allowed by")
    assert [status(stage, row) for row in (first, second, third)] == ["allowed", "denied", "pending"]


def test_x_chooses_and_several_are_decided_at_once(admin: Visitor, stage: Stage) -> None:
    rows = asked(stage, *[call(command=f"echo {n}") for n in range(3)])
    admin.open()
    admin.press("xjx")
    expect(admin.page.locator("#chosen")).to_have_text("2 of 3")
    admin.button("Deny each").click()
    expect(admin.rows.first).to_contain_text("Denied by")
    assert [status(stage, row) for row in rows] == ["denied", "denied", "pending"]


def test_enter_opens_slash_searches_and_a_question_mark_lists_the_keys(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage)
    admin.open()
    admin.press("?")
    expect(admin.page.get_by_role("dialog")).to_contain_text("five seconds to undo")
    admin.page.keyboard.press("Escape")
    admin.press("/")
    expect(admin.page.get_by_role("searchbox", name="Search everything")).to_be_focused()
    admin.press("a")
    assert status(stage, approval) == "pending", "a letter in a field is text"
    admin.page.keyboard.press("Escape")
    expect(admin.page.locator("#finder")).not_to_be_visible()
    admin.press("j")
    admin.page.keyboard.press("Enter")
    expect(admin.page.get_by_role("heading", level=1)).to_contain_text("wants to run a shell command")
    admin.press("e")
    expect(admin.page.get_by_role("heading", level=1)).to_have_text("Edit, then allow")


def test_after_a_decision_the_next_card_follows(admin: Visitor, stage: Stage) -> None:
    first, second = asked(stage, call(command="echo 1"), call(command="echo 2"))
    admin.window.control_time()
    admin.open("/inbox/next")
    expect(admin.page.locator("#place")).to_contain_text("1 of 2")
    admin.press("a")
    expect(admin.page.locator("article")).to_have_id(second.id)
    admin.press("d")
    expect(admin.page.get_by_label("Why not?")).to_be_focused()
    admin.page.keyboard.press("Enter")
    expect(admin.page.locator("#decided")).to_contain_text("Denied by")
    admin.page.clock.run_for(5100)
    expect(admin.page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    assert [status(stage, row) for row in (first, second)] == ["allowed", "denied"]


def test_a_line_behind_d_tells_the_agent_why_and_shift_ends_the_run(admin: Visitor, stage: Stage) -> None:
    for keys, decision in (("Enter", {}), ("Shift+Enter", {"interrupt": True})):
        [approval] = asked(stage)
        admin.open(f"/inbox/approvals/{approval.id}")
        admin.press("d")
        admin.page.keyboard.type("Not on a Friday.")
        admin.page.keyboard.press(keys)
        expect(admin.page.locator("#decided")).to_contain_text("Denied")
        assert stage.get(Approval, approval.id).decision == {"result": "deny", "deny_message": "Not on a Friday."} | decision


def test_undo_takes_an_allow_back(admin: Visitor, stage: Stage) -> None:
    first, second = asked(stage, call(command="echo 1"), call(command="echo 2"))
    admin.window.control_time()
    admin.open("/inbox/next")
    admin.page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    admin.press("a")
    expect(admin.page.locator("article")).to_have_id(second.id)
    admin.page.clock.run_for(4500)
    admin.button("Undo").click()
    expect(admin.page.locator("article")).to_have_id(first.id)
    admin.page.clock.run_for(6000)
    admin.open()
    expect(admin.rows).to_have_count(2)
    assert status(stage, first) == "pending"


def test_an_allow_of_a_page_that_was_left_is_not_sent(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage)
    posts: list[str] = []
    admin.page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    admin.window.control_time()
    admin.open()
    admin.press("a")
    expect(admin.button("Undo")).to_be_visible()
    admin.open("/inbox/grants")
    admin.page.go_back()
    admin.page.clock.run_for(6000)
    expect(admin.rows.first).to_be_visible()
    assert posts == []
    assert status(stage, approval) == "pending"


def test_a_skipped_card_comes_again_at_the_end(admin: Visitor, stage: Stage) -> None:
    first, second = asked(stage, call(command="echo 1"), call(command="echo 2"))
    admin.open(f"/inbox/approvals/{first.id}")
    admin.press("j")
    expect(admin.page.locator("article")).to_have_id(second.id)
    admin.press("j")
    expect(admin.page.locator("article")).to_have_id(first.id)
    assert stage.get(Approval, first.id).status == "pending"
