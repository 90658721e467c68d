"""A card shows what a person needs to judge a call: claims, earlier decisions, and who else must agree."""

from collections.abc import Callable

import people
from inbox.visitor import Visitor
from inbox.waiting import asked, status
from playwright.sync_api import expect
from rows.stage import Stage, call, entry

from models.database.transactions import transaction
from models.pure.text.line_diff import hunks
from models.session.approval.evidence import Evidence
from models.workspace import toolset


def test_a_server_s_own_claims_are_marked_as_claims(admin: Visitor, stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", annotations={"destructiveHint": False, "title": "Harmless"})]})
    [approval] = asked(stage, call("mcp__shop__refund", n=5), servers={"shop": "assent:orders"})
    admin.open(f"/inbox/approvals/{approval.id}")
    claims = admin.page.locator("section", has_text="Claims of the tool's own server, not verified")
    expect(claims).to_contain_text("Harmless")
    expect(admin.page.locator("#evidence")).not_to_contain_text("Harmless")


def test_a_card_shows_the_directory_that_the_call_names(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage, call(command="git status", working_directory="src/\u202eapp"))
    admin.open(f"/inbox/approvals/{approval.id}")
    expect(admin.page.locator("#evidence header").first).to_have_text("In src/<U+202E>app")
    expect(admin.page.locator("#evidence")).to_contain_text("working_directory")


def test_an_edit_is_shown_as_a_diff_of_the_file(admin: Visitor, stage: Stage) -> None:
    edit = call("edit", file_path="src/a.py", old_string="rate = 1", new_string="rate = 2")
    [approval] = asked(stage, edit, edit="always_ask")
    admin.open(f"/inbox/approvals/{approval.id}")
    change = admin.page.get_by_role("table", name="The change")
    for css, text in (("del", "rate = 1"), ("add", "rate = 2")):
        expect(change.locator(f"tr.{css}")).to_contain_text(text)
    lines, left_out = hunks("# Rates\nrate = 1\n", "# Rates\nrate = 2\n")
    with transaction(stage.workspace_id) as db:
        Evidence.keep(db, approval.id, approval.session_id, {"hunks": lines, "left_out": left_out})
    admin.open(f"/inbox/approvals/{approval.id}")
    expect(change.locator("tr").first).to_contain_text("# Rates")
    expect(change.locator("tr.del .old")).to_have_text("2")
    expect(admin.page.locator("#evidence header")).to_contain_text("src/a.py +1 -1")


def test_a_card_says_that_it_may_have_been_decided_after_a_backup(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage, call(command="git push"))
    of_row_to_review = admin.page.locator(f'input.partial[value^="{approval.id}"]')
    admin.open("/inbox")
    expect(admin.rows).to_have_count(1)
    expect(of_row_to_review).to_have_count(0)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE approval SET backup_at = '2026-03-01T12:00:00Z' WHERE id = %(id)s", id=approval.id)
    admin.open(f"/inbox/approvals/{approval.id}")
    expect(admin.page.locator(".loud")).to_contain_text("May have been decided after the backup of")
    expect(admin.button("Allow once")).to_be_enabled()
    admin.open("/inbox")
    expect(of_row_to_review).to_have_count(1)


def test_a_card_names_earlier_decisions_about_its_tool(admin: Visitor, stage: Stage) -> None:
    session_id = stage.session(max_turns=9)
    first, second = asked(stage, call(command="git push"), call(command="git push --tags"), session_id=session_id)
    stage.decide(first, result="deny")
    admin.open(f"/inbox/approvals/{second.id}")
    expect(admin.page.locator(".precedent")).to_contain_text("git push: denied 1")
    admin.unfold("Show them")
    before = admin.page.get_by_role("region", name="Decided before about bash")
    expect(before.get_by_role("listitem")).to_have_count(1)
    expect(before).to_contain_text("git push")
    expect(before).to_contain_text("Denied by")


def test_a_quorum_card_counts_votes_and_says_who_may_decide(visit: Callable[..., Visitor], stage: Stage) -> None:
    finance = people.group(stage)
    approval = asked(stage, approval={"approvers": [f"group:{finance}"], "required_approvals": 2})[0]
    anna, ben = (
        visit("approver", somebody=people.member(stage, email=f"{name}@example.com", groups=[finance]), java_script_enabled=False)
        for name in ("anna", "ben")
    )
    outsider = visit("admin")
    path = f"/inbox/approvals/{approval.id}"

    outsider.open(path)
    expect(outsider.button("Allow once")).to_be_disabled()
    expect(outsider.page.locator("#why-not")).to_contain_text("You are not one of those who may decide this.")
    expect(outsider.page.locator("#why-not")).to_contain_text("each of finance")

    anna.open(path)
    anna.button("Allow once").click()
    anna.open(path)
    expect(anna.page.locator(".votes")).to_contain_text("1 of 2")
    expect(anna.page.locator(".votes li").first).to_contain_text("anna allowed")
    expect(anna.page.locator(".votes .missing")).to_have_text("one more of finance")
    expect(anna.page.locator(".votes li").last).to_have_text("Bben")
    expect(anna.button("Allow once")).to_be_disabled()
    expect(anna.page.locator("#why-not")).to_contain_text("You have voted to allow this. You may still deny.")
    expect(anna.page.locator("details.deny > summary")).to_be_visible()
    assert status(stage, approval) == "pending"

    ben.open(path)
    ben.button("Allow once").click()
    assert status(stage, approval) == "allowed"
