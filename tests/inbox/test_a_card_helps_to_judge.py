"""A card says what is at stake, why, what was decided before and what has changed; its answers are in view; it follows its call."""

from collections.abc import Callable
from typing import Any

import people
import pytest
from inbox.accessibility import check, check_width
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked, asks_back, unknown_outcome
from own_database import Clock
from playwright.sync_api import expect
from rows.stage import Stage, call, entry, say
from rows.voting import vote

from models.database.transactions import transaction
from models.session.approval.evidence import Evidence
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

LONG = "\n".join(f"echo {number}" for number in range(200))
QUESTIONS = {"who": {"message": "For whom?", "schema": {"type": "object", "properties": {"name": {"type": "string"}}}}}


def test_the_facts_stand_in_the_order_in_which_people_judge(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage, say("It is green, so I push."), call(command="git push", working_directory="src"), text="Release it.")
    for branch in ("main", "release"):
        with transaction(stage.workspace_id) as db:
            Evidence.keep(db, approval.id, approval.session_id, {"directory": "src", "branch": branch})
    plain.open(f"/inbox/approvals/{approval.id}")
    plain.page.fold()
    text = plain.page.one("article").text
    facts = ["wants to run", "first time for this agent", "the branch was main; it is release now", "git push", "It is green"]
    facts += ["Release it.", "The call runs once", "The agent is told", "the call is denied"]
    places = [text.find(fact) for fact in facts]
    assert places == sorted(places), dict(zip(facts, places, strict=True))
    assert -1 not in places
    assert text.count("git push") == 1, "the call stands there once"


@pytest.mark.parametrize("size", [{"viewport": {"width": 1280, "height": 800}}, {"phone": True}])
def test_the_answers_are_in_view_wherever_the_card_is_scrolled(visit: Any, stage: Stage, size: dict[str, Any]) -> None:
    [approval] = asked(stage, call(command=LONG))
    person = visit("admin", **size)
    person.open(f"/inbox/approvals/{approval.id}")
    for place in ("0", "document.body.scrollHeight / 2", "document.body.scrollHeight"):
        person.page.evaluate(f"scrollTo(0, {place})")
        expect(person.button("Allow once")).to_be_in_viewport(ratio=1)
        expect(person.page.locator("details.deny > summary")).to_be_in_viewport(ratio=1)


def test_each_kind_of_card_fits_a_phone_and_is_for_everybody(visit: Any, stage: Stage) -> None:
    phone = visit("admin", phone=True)
    rows = [asked(stage)[0], unknown_outcome(stage), asks_back(stage, QUESTIONS)]
    for row in rows:
        phone.open(f"/inbox/approvals/{row.id}")
        check_width(phone.page)
        for summary in phone.page.locator("details.answer > summary").all():
            summary.click()
            check(phone.page)


def test_a_decided_card_follows_its_call(admin: Visitor, stage: Stage, clock: Clock) -> None:
    [approval] = asked(stage)
    admin.open(f"/inbox/approvals/{approval.id}")
    stage.decide(approval, result="allow")
    came_of = admin.page.locator(".came-of")
    expect(came_of).to_have_text("Allowed, waiting for a worker")
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    expect(came_of).to_have_text("Running")
    clock.advance(3)
    stage.finish_call(held, content=[say("stderr:\nno such file"), say("exit code: 2\ndirectory: .")], is_error=True)
    expect(came_of).to_contain_text("Failed after ")
    expect(came_of).to_contain_text("exit code 2: no such file")
    expect(came_of).to_have_class("came-of bad")
    expect(admin.page.locator("#evidence")).to_contain_text("ls -l")


def test_the_input_that_another_voter_edited_is_shown_as_a_diff(
    plain: Plain, visit_without_scripts: Callable[..., Plain], stage: Stage
) -> None:
    ben, dev = visit_without_scripts("admin"), people.member(stage, "developer")
    by_dev = {"on_behalf_of": f"user:{dev.person_id}", "approval": {"four_eyes": True}}
    [approval] = asked(stage, call(command="make release"), **by_dev)
    vote(stage, ben.somebody, approval, "allow", updated_input={"command": "make release DRY_RUN=1"})
    plain.open(f"/inbox/approvals/{approval.id}")
    change = plain.page.one("section", name="What a person changed")
    assert "make release" in change.one("tr.del")
    assert "make release DRY_RUN=1" in change.one("tr.add")


def test_a_tool_has_its_name_for_people_and_its_arguments_their_titles(plain: Plain, stage: Stage) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "title": "Amount in cents"}, "note": {"type": "string"}}}
    toolset.announce({"orders": [entry("refund_order", input_schema=schema)]})
    [approval] = asked(stage, call("mcp__shop__refund_order", n=5, note=""), servers={"shop": "assent:orders"})
    plain.open(f"/inbox/approvals/{approval.id}")
    assert plain.page.one("h1").text == "Agent wants to run refund order of shop"
    assert "Amount in cents n" in plain.page.one("#evidence")
    assert 'Empty: note ""' in plain.page.one("#evidence")


def test_a_person_is_told_what_silence_does_and_that_the_deadline_moved(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage)
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "If nobody decides, the call is denied. 23 hours left" in plain.page.one("#deadline")
    assert stage.get(Approval, approval.id).status == "pending"


def test_a_person_sees_a_change_of_the_input_before_it_runs(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage, call(command="make release\nmake notes"))
    plain.open(f"/inbox/approvals/{approval.id}/edit")
    plain.fill("command", "make release\nmake notes DRAFT=1")
    plain.press("Show the change")
    change = plain.page.one("section", name="Your change")
    assert "make notes DRAFT=1" in change.one("tr.add")
    assert len(change.all("tr.del")) == 1
    assert stage.get(Approval, approval.id).status == "pending"
    plain.press("Allow once with this input")
    assert stage.get(Approval, approval.id).decided_shown or stage.get(Approval, approval.id).status == "allowed"


def test_each_command_of_a_line_has_its_pattern_and_a_doubtful_line_says_why_it_has_none(plain: Plain, stage: Stage) -> None:
    certain, doubtful = asked(stage, call(command="npm ci && npm run build -- --fast"), call(command="make && git push"))
    plain.open(f"/inbox/approvals/{certain.id}/always")
    patterns = [field.get("value") for field in plain.page.all("input[name=match][type=radio]")]
    assert patterns == ["each", "exact", "tool"]
    assert "This line runs 2 commands." in plain.page.one("main")
    plain.open(f"/inbox/approvals/{doubtful.id}/always")
    assert "use git in a call of its own" in plain.page.one("p", "No pattern of commands covers this line")
