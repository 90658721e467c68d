"""A session's page tells what happened in lines: who said what, one line per call, for whom the run waited, and what helps."""

import re
from collections.abc import Callable
from dataclasses import replace

from inbox.visitor import Visitor
from inbox.waiting import asked
from own_database import Clock
from people import member
from playwright.sync_api import expect
from rows.spending import COSTS_10, MODEL, QUOTE
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.flow.decide.decisions import decide
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace.api_key import ApiKey, NewKey

OUTPUT = "stdout:\n" + "\n".join(f"line {number}" for number in range(30)) + "\nexit code: 0"
PLACES = "lines => [...new Set(lines.map(line => getComputedStyle(line).position))]"
"""How the lines of a list are placed."""


def fail_for_good(stage: Stage, session_id: str, clock: Clock) -> None:
    """Have the model fail until the run ends."""
    for _ in range(6):
        stage.fail(stage.begin(session_id))
        clock.advance(120)


def test_a_call_is_one_line_with_who_allowed_it_and_how_it_ended(plain: Visitor, stage: Stage, clock: Clock) -> None:
    [approval] = asked(stage, say("It is **time**, see [the log](https://ci.example/1)."), call(command="make release"))
    ben = member(stage, "approver", email="ben@example.com")
    clock.advance(41 * 60)
    stage.locked(
        approval.session_id,
        lambda locked: decide(locked, locked.db.get_one(Approval, approval.id), Decision("allow")),
        by=ben.principal,
    )
    held = stage.begin_call(stage.get(ToolCall, approval.tool_call_id))
    clock.advance(3)
    stage.finish_call(held, OUTPUT)
    plain.open(f"/inbox/sessions/{approval.session_id}")
    conversation = plain.page.locator("#conversation")
    expect(conversation.locator("strong")).to_have_text("time")
    expect(conversation.get_by_role("link", name="the log")).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(conversation).to_contain_text("(ci.example)")
    expect(conversation.locator("li.gap")).to_have_text("waited 41 minutes for ben")
    line = conversation.locator("li.call")
    for words in ("bash", "make release", "allowed by ben", "exit 0", "3."):
        expect(line.locator(".call-line")).to_contain_text(words)
    expect(line.get_by_text("Allowed by ben, after 41 minutes.")).to_be_hidden()
    line.locator("summary").first.click()
    expect(line.get_by_text("Allowed by ben, after 41 minutes.")).to_be_visible()
    expect(line.get_by_text("line 10")).to_be_visible()
    expect(line.get_by_text("line 20")).to_be_hidden()
    line.get_by_text("20 more lines").click()
    expect(line.get_by_text("line 20")).to_be_visible()
    expect(line.locator(".at time")).to_have_text(re.compile(r"\d\d:\d\d"))
    expect(plain.page.locator("#facts")).to_contain_text("turn 2 of 5")
    lanes = plain.page.locator("#lanes")
    expect(lanes.locator("dl")).to_contain_text("41 min")
    expect(lanes.locator("rect.person title")).to_have_text("Waited for ben, 41 min")
    assert lanes.locator("svg a:has(rect.person)").get_attribute("href") == f"#{held.id}"


def test_a_session_that_waits_leads_to_its_oldest_call(plain: Visitor, stage: Stage) -> None:
    first, _second = asked(stage, call(command="make"), call(command="make test"))
    plain.open(f"/inbox/sessions/{first.session_id}")
    expect(plain.page.locator("#status")).to_contain_text("waiting")
    plain.page.locator("#status").get_by_role("link", name="Decide (2)").click()
    expect(plain.page.locator("article")).to_have_id(first.id)


def test_a_failed_session_says_why_and_a_retry_goes_on(plain: Visitor, stage: Stage, clock: Clock) -> None:
    session_id = stage.session(max_turns=9)
    stage.message(session_id, "Clean up.")
    fail_for_good(stage, session_id, clock)
    plain.open(f"/inbox/sessions/{session_id}")
    expect(plain.page.locator("#status")).to_contain_text("failed")
    expect(plain.page.locator("#status")).to_contain_text("Overloaded")
    expect(plain.page.locator("#conversation li.error")).to_contain_text("6 times: Overloaded last")
    plain.button("Retry").click()
    expect(plain.page.locator("#status")).to_have_text("working")
    stage.reply(session_id, say("Clean."))
    assert [message["role"] for message in stage.history(session_id)] == ["user", "assistant"]
    plain.open(f"/inbox/sessions/{session_id}")
    expect(plain.page.locator("#status")).to_have_text("done")
    expect(plain.page.locator("#conversation")).to_contain_text("Please go on.")


def test_a_session_out_of_turns_says_so_and_goes_on(plain: Visitor, stage: Stage) -> None:
    session_id = stage.session(max_turns=2, bash="always_allow")
    stage.run_call(stage.propose(session_id))
    stage.reply(session_id, call(command="ls"))
    assert stage.read(session_id).stop_reason == {"type": "end_turn", "limit_reached": "max_turns"}
    plain.open(f"/inbox/sessions/{session_id}")
    expect(plain.page.locator("#status")).to_contain_text("out of turns")
    expect(plain.page.locator("#status")).to_contain_text("used the 2 turns that a message gives it")
    expect(plain.page.locator("#conversation")).to_contain_text("Out of turns.")
    plain.button("Go on").click()
    expect(plain.page.locator("#status")).to_have_text("working")
    stage.reply(session_id, say("Done."))
    assert stage.read(session_id).stop_reason == {"type": "end_turn"}


def test_a_message_that_the_model_cannot_take_is_not_retried(plain: Visitor, stage: Stage) -> None:
    session_id = stage.session()
    stage.message(session_id)
    stage.fail(stage.begin(session_id), retryable=False, leave_out=True)
    plain.open(f"/inbox/sessions/{session_id}")
    expect(plain.page.locator("#status")).to_contain_text("write another one")
    expect(plain.button("Retry")).to_have_count(0)


def test_a_session_out_of_budget_shows_the_bar_and_goes_on_once_it_is_raised(plain: Visitor, stage: Stage) -> None:
    session_id = stage.session(model=MODEL, budget="5", on_ask="deny")
    stage.quote = QUOTE
    stage.message(session_id, "Summarize.")
    stage.reply(session_id, say("So far."), charge=COSTS_10)
    stage.message(session_id, "More.")
    assert stage.claim(session_id) is None
    plain.open(f"/inbox/sessions/{session_id}")
    expect(plain.page.locator("#status")).to_contain_text("out of budget")
    expect(plain.page.locator("#facts")).to_contain_text("$10.00 of $5.00")
    plain.page.get_by_label("Raise the budget to").fill("x")
    plain.button("Raise, and go on").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("Write an amount in dollars")
    plain.page.get_by_label("Raise the budget to").fill("40")
    plain.button("Raise, and go on").click()
    expect(plain.page.locator("#status")).to_have_text("working")
    assert stage.claim(session_id)


def test_the_newest_lines_are_in_view_and_earlier_ones_a_page_away(admin: Visitor, stage: Stage) -> None:
    session_id = stage.session(max_turns=99)
    for number in range(30):
        stage.message(session_id, f"Question {number}.")
        stage.reply(session_id, say(f"Answer {number}."))
    admin.open(f"/inbox/sessions/{session_id}")
    expect(admin.page.get_by_text("Answer 29.")).to_be_in_viewport()
    expect(admin.page.get_by_text("Answer 2.", exact=True)).to_have_count(0)
    admin.page.get_by_role("link", name="Earlier events").click()
    expect(admin.page.get_by_text("Answer 2.", exact=True)).to_have_count(1)
    expect(admin.page.get_by_label("A message to the agent")).to_have_count(0)
    admin.page.get_by_role("link", name="The newest events").click()
    expect(admin.page.get_by_text("Answer 29.")).to_be_in_viewport()


def test_the_lanes_and_files_are_of_more_than_the_page_and_lead_to_it(admin: Visitor, stage: Stage, clock: Clock) -> None:
    session_id = stage.session(max_turns=99, write="always_allow")
    for number in range(25):
        stage.message(session_id, f"Question {number}.")
        blocks = [call("write", file_path="src/first.py", content="x")] if number == 1 else []
        calls = stage.reply(session_id, say(f"Answer {number}."), *blocks)
        for tool_call in calls:
            clock.advance(7)
            stage.finish_call(stage.begin_call(tool_call))
            stage.reply(session_id, say("Written."))
        clock.advance(60)
    admin.open(f"/inbox/sessions/{session_id}")
    expect(admin.page.get_by_text("Answer 1.", exact=True)).to_have_count(0)
    file = admin.page.locator("#lanes").get_by_role("link", name="src/first.py")
    bar = admin.page.locator("svg.lanes a:has(rect.tool)")
    expect(bar.locator("title")).to_contain_text("write")
    for link in (bar, file):
        admin.open(f"/inbox/sessions/{session_id}")
        link.click()
        expect(admin.page.get_by_text("Answer 1.", exact=True)).to_be_in_viewport()
        expect(admin.page.get_by_text("Answer 24.")).to_have_count(0)
    admin.open(f"/inbox/sessions/{session_id}?at=99999999999999")
    expect(admin.page.get_by_text("Answer 24.")).to_be_visible()
    admin.open(f"/inbox/sessions/{session_id}?at=nonsense")
    expect(admin.page.get_by_text("Answer 24.")).to_be_in_viewport()


def test_a_key_that_started_the_session_has_its_name(api: str, stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        key, _ = ApiKey.create(db, NewKey("CI"))
    stage.principal = replace(stage.principal, id=key.id)
    session_id = stage.session()
    stage.message(session_id, "Please test it.")
    with member(stage, "admin").client(api) as client:
        page = client.get(f"/inbox/sessions/{session_id}").text
    assert "<span>Agent, version 1</span><span>by the key “CI”, started" in page
    assert '<span class="who">the key “CI”</span><div class="text"><p class="plain">Please test it.' in page


def test_a_key_s_words_are_not_those_of_the_person_who_started_the_session(api: str, stage: Stage) -> None:
    anna = member(stage, "developer", email="anna@example.com")
    key, stage.principal = stage.principal, anna.principal
    session_id = stage.session()
    stage.message(session_id, "Please test it.")
    stage.principal = key
    stage.message(session_id, "And push it.")
    with member(stage, "admin").client(api) as client:
        page = client.get(f"/inbox/sessions/{session_id}").text
    assert '<span class="who">anna</span><div class="text"><p class="plain">Please test it.' in page
    assert '<span class="who">client</span><div class="text"><p class="plain">And push it.' in page


def test_what_a_person_did_stands_in_its_place_on_a_phone_too(visit: Callable[..., Visitor], stage: Stage) -> None:
    """A decision and an interrupt are lines of the session, and of the story on a card."""
    phone = visit("admin", phone=True)
    [first] = asked(stage)
    stage.decide(first, result="deny")
    stage.send(first.session_id, {"type": "user.interrupt"})
    [second] = asked(stage, session_id=first.session_id)
    phone.open(f"/inbox/sessions/{first.session_id}")
    expect(phone.page.locator("#conversation li", has_text="Stop.")).to_be_visible()
    assert phone.page.locator("#conversation li").evaluate_all(PLACES) == ["static"]
    phone.open(f"/inbox/approvals/{second.id}")
    phone.page.locator(".folds summary", has_text="The session so far").click()
    assert phone.page.locator("#story li").evaluate_all(PLACES) == ["static"]
