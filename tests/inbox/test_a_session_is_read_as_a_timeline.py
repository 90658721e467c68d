"""A session's page tells what happened in lines: who said what, one line per call, for whom the run waited, and what helps."""

import re
from collections.abc import Callable
from dataclasses import replace

from inbox.plain import Plain
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


def test_a_call_is_one_line_with_who_allowed_it_and_how_it_ended(plain: Plain, stage: Stage, clock: Clock) -> None:
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
    conversation = plain.page.one("#conversation")
    assert conversation.texts("strong") == ["time"]
    assert conversation.one("a", name="the log").get("rel") == "noopener noreferrer nofollow"
    assert "(ci.example)" in conversation
    assert conversation.one("li.gap").text == "waited 41 minutes for ben"
    line = conversation.one("li.call")
    for words in ("bash", "make release", "allowed by ben", "exit 0", "3."):
        assert words in line.one(".call-line")
    folded = "Allowed by ben, after 41 minutes."
    assert folded in line
    assert "line 10" in line.one(".inside")
    assert "line 20" in line.one("details.rest:not([open])", "20 more lines")
    assert re.fullmatch(r"\d\d:\d\d|\w{3} \d+", line.one(".at time").text)  # the date, if midnight came meanwhile
    line.fold()
    assert folded not in line
    assert "turn 2 of 5" in plain.page.one("#facts")
    lanes = plain.page.one("#lanes")
    assert "41 min" in lanes.one("dl")
    assert lanes.one("rect.person title").text == "Waited for ben, 41 min"
    assert lanes.one("svg a:has(rect.person)").get("href") == f"#{held.id}"


def test_a_session_that_waits_leads_to_its_oldest_call(plain: Plain, stage: Stage) -> None:
    first, _second = asked(stage, call(command="make"), call(command="make test"))
    plain.open(f"/inbox/sessions/{first.session_id}")
    assert "waiting" in plain.page.one("#status")
    plain.follow("Decide (2)", within=plain.page.one("#status"))
    assert plain.page.one("article").get("id") == first.id


def test_a_failed_session_says_why_and_a_retry_goes_on(plain: Plain, stage: Stage, clock: Clock) -> None:
    session_id = stage.session(max_turns=9)
    stage.message(session_id, "Clean up.")
    fail_for_good(stage, session_id, clock)
    plain.open(f"/inbox/sessions/{session_id}")
    assert "failed" in plain.page.one("#status")
    assert "Overloaded" in plain.page.one("#status")
    assert "6 times: Overloaded last" in plain.page.one("#conversation li.error")
    plain.press("Retry")
    assert plain.page.one("#status").text == "working"
    stage.reply(session_id, say("Clean."))
    assert [message["role"] for message in stage.history(session_id)] == ["user", "assistant"]
    plain.open(f"/inbox/sessions/{session_id}")
    assert plain.page.one("#status").text == "done"
    assert "Please go on." in plain.page.one("#conversation")


def test_a_session_out_of_turns_says_so_and_goes_on(plain: Plain, stage: Stage) -> None:
    session_id = stage.session(max_turns=2, bash="always_allow")
    stage.run_call(stage.propose(session_id))
    stage.reply(session_id, call(command="ls"))
    assert stage.read(session_id).stop_reason == {"type": "end_turn", "limit_reached": "max_turns"}
    plain.open(f"/inbox/sessions/{session_id}")
    assert "out of turns" in plain.page.one("#status")
    assert "used the 2 turns that a message gives it" in plain.page.one("#status")
    assert "Out of turns." in plain.page.one("#conversation")
    plain.press("Go on")
    assert plain.page.one("#status").text == "working"
    stage.reply(session_id, say("Done."))
    assert stage.read(session_id).stop_reason == {"type": "end_turn"}


def test_a_message_that_the_model_cannot_take_is_not_retried(plain: Plain, stage: Stage) -> None:
    session_id = stage.session()
    stage.message(session_id)
    stage.fail(stage.begin(session_id), retryable=False, leave_out=True)
    plain.open(f"/inbox/sessions/{session_id}")
    assert "write another one" in plain.page.one("#status")
    assert not plain.page.all("button", name="Retry")


def test_a_session_out_of_budget_shows_the_bar_and_goes_on_once_it_is_raised(plain: Plain, stage: Stage) -> None:
    session_id = stage.session(model=MODEL, budget="5", on_ask="deny")
    stage.quote = QUOTE
    stage.message(session_id, "Summarize.")
    stage.reply(session_id, say("So far."), charge=COSTS_10)
    stage.message(session_id, "More.")
    assert stage.claim(session_id) is None
    plain.open(f"/inbox/sessions/{session_id}")
    assert "out of budget" in plain.page.one("#status")
    assert "$10.00 of $5.00" in plain.page.one("#facts")
    plain.fill("Raise the budget to", "x")
    plain.press("Raise, and go on")
    assert "Write an amount in dollars" in plain.page.one("[role=alert]")
    plain.fill("Raise the budget to", "40")
    plain.press("Raise, and go on")
    assert plain.page.one("#status").text == "working"
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
