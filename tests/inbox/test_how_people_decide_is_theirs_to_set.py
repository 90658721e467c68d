"""A person switches off the keys that decide. Admins edit the reasons for a denial, which are offered to everybody."""

from collections.abc import Callable

from inbox.accessibility import check
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked, status
from playwright.sync_api import expect
from rows.stage import Stage, call

from models.session.approval.row import Approval


def test_a_person_switches_off_the_keys_that_decide(admin: Visitor, visit: Callable[..., Visitor], stage: Stage) -> None:
    rows = asked(stage, call(command="echo 1"), call(command="echo 2"))
    admin.open("/inbox/keyboard")
    check(admin.page)
    admin.page.get_by_label("Off").check()
    admin.button("Save").click()
    expect(admin.page.get_by_label("Off")).to_be_checked()
    admin.open()
    admin.press("adj")
    expect(admin.page.locator("#pane [data-card]")).to_have_attribute("data-of", rows[1].id)
    expect(admin.page.locator("#held")).to_have_count(0)
    admin.open(f"/inbox/approvals/{rows[0].id}")
    admin.press("ad")
    expect(admin.button("Allow once")).to_be_enabled()
    expect(admin.page.locator("#held, details.deny[open]")).to_have_count(0)
    for button in (admin.button("Allow once"), admin.page.locator("details.deny > summary")):
        expect(button.locator("kbd")).to_be_hidden()
    admin.page.keyboard.press("?")
    expect(admin.page.locator("#keys")).to_contain_text("Deny: switched off")
    assert {status(stage, row) for row in rows} == {"pending"}
    other = visit("approver")
    other.open()
    other.press("a")
    expect(other.page.locator("#held")).to_be_visible()


def test_admins_edit_the_reasons_that_people_choose(plain: Plain, stage: Stage) -> None:
    rows = asked(stage, call(command="echo 1"), call(command="echo 2"))
    plain.open("/inbox/denial-reasons")
    plain.fill("The reasons, a line each", "Not on a Friday.\n\nAsk the team first.\n")
    plain.press("Save")
    plain.open()
    assert len(plain.page.all("#reasons option")) == 2
    plain.check("Choose:", within=plain.rows[0])
    plain.fill("Why?", "Ask the team first.")
    plain.press("Deny each")
    assert len(plain.rows) == 1
    assert (stage.get(Approval, rows[0].id).decision or {})["deny_message"] == "Ask the team first."
    plain.open("/inbox/denial-reasons")
    plain.fill("The reasons, a line each", "x\n" * 10)
    plain.press("Save")
    assert "These are 10 reasons. At most 9 fit" in plain.page.one("[role=alert]")
    plain.press("Restore the built-in ones")
    assert "Not now." in (plain.page.field("The reasons, a line each").value or "")


def test_only_admins_edit_the_reasons(visit: Callable[..., Visitor], stage: Stage) -> None:
    approver = visit("approver")
    approver.open("/inbox/denial-reasons")
    expect(approver.page.get_by_role("heading", level=1)).to_have_text("Not allowed")
