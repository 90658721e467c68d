"""A card shows what a person needs to judge a call: claims, earlier decisions, and who else must agree."""

from collections.abc import Callable

import people
from inbox.plain import Plain
from inbox.waiting import asked, status
from rows.stage import Stage, call, entry

from models.database.transactions import transaction
from models.pure.text.line_diff import hunks
from models.session.approval.evidence import Evidence
from models.workspace import toolset


def test_a_server_s_own_claims_are_marked_as_claims(plain: Plain, stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", annotations={"destructiveHint": False, "title": "Harmless"})]})
    [approval] = asked(stage, call("mcp__shop__refund", n=5), servers={"shop": "assent:orders"})
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "Harmless" in plain.page.one("section", "Claims of the tool's own server, not verified")
    assert "Harmless" not in plain.page.one("#evidence")


def test_a_card_shows_the_directory_that_the_call_names(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage, call(command="git status", working_directory="src/\u202eapp"))
    plain.open(f"/inbox/approvals/{approval.id}")
    assert plain.page.texts("#evidence header")[0] == "In src/<U+202E>app"
    assert "working_directory" in plain.page.one("#evidence")


def test_an_edit_is_shown_as_a_diff_of_the_file(plain: Plain, stage: Stage) -> None:
    edit = call("edit", file_path="src/a.py", old_string="rate = 1", new_string="rate = 2")
    [approval] = asked(stage, edit, edit="always_ask")
    plain.open(f"/inbox/approvals/{approval.id}")
    change = plain.page.one("table", name="The change")
    for css, text in (("del", "rate = 1"), ("add", "rate = 2")):
        assert text in change.one(f"tr.{css}")
    lines, left_out = hunks("# Rates\nrate = 1\n", "# Rates\nrate = 2\n")
    with transaction(stage.workspace_id) as db:
        Evidence.keep(db, approval.id, approval.session_id, {"hunks": lines, "left_out": left_out})
    plain.open(f"/inbox/approvals/{approval.id}")
    change = plain.page.one("table", name="The change")
    assert "# Rates" in change.all("tr")[0]
    assert change.one("tr.del .old").text == "2"
    assert "src/a.py +1 -1" in plain.page.one("#evidence header")


def test_a_card_says_that_it_may_have_been_decided_after_a_backup(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage, call(command="git push"))
    of_row_to_review = f'input.partial[value^="{approval.id}"]'
    plain.open("/inbox")
    assert len(plain.rows) == 1
    assert not plain.page.all(of_row_to_review)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE approval SET backup_at = '2026-03-01T12:00:00Z' WHERE id = %(id)s", id=approval.id)
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "May have been decided after the backup of" in plain.page.one(".loud")
    assert plain.page.all("button:not([disabled])", name="Allow once")
    plain.open("/inbox")
    assert len(plain.page.all(of_row_to_review)) == 1


def test_a_card_names_earlier_decisions_about_its_tool(plain: Plain, stage: Stage) -> None:
    session_id = stage.session(max_turns=9)
    first, second = asked(stage, call(command="git push"), call(command="git push --tags"), session_id=session_id)
    stage.decide(first, result="deny")
    plain.open(f"/inbox/approvals/{second.id}")
    assert "git push: denied 1" in plain.page.one(".precedent")
    before = plain.page.one("section", name="Decided before about bash")
    [line] = before.all("li")
    assert "git push" in line
    assert "Denied by" in line


def test_a_quorum_card_counts_votes_and_says_who_may_decide(visit_without_scripts: Callable[..., Plain], stage: Stage) -> None:
    finance = people.group(stage)
    approval = asked(stage, approval={"approvers": [f"group:{finance}"], "required_approvals": 2})[0]
    anna, ben = (
        visit_without_scripts(somebody=people.member(stage, email=f"{name}@example.com", groups=[finance]))
        for name in ("anna", "ben")
    )
    outsider = visit_without_scripts("admin")
    path = f"/inbox/approvals/{approval.id}"

    outsider.open(path)
    assert not outsider.page.all("button:not([disabled])", name="Allow once")
    assert "You are not one of those who may decide this." in outsider.page.one("#why-not")
    assert "each of finance" in outsider.page.one("#why-not")

    anna.open(path)
    anna.press("Allow once")
    anna.open(path)
    assert "1 of 2" in anna.page.one(".votes")
    voted, *_others, asked_too = anna.page.texts(".votes li")
    assert "anna allowed" in voted
    assert anna.page.one(".votes .missing").text == "one more of finance"
    assert asked_too == "Bben"
    assert not anna.page.all("button:not([disabled])", name="Allow once")
    assert "You have voted to allow this. You may still deny." in anna.page.one("#why-not")
    assert anna.page.all("details.deny > summary")
    assert status(stage, approval) == "pending"

    ben.open(path)
    ben.press("Allow once")
    assert status(stage, approval) == "allowed"
