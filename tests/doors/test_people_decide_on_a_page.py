"""The inbox as a page, in a real browser: every answer can be given, and what was shown is what is decided."""

from collections.abc import Callable
from typing import Any

import pytest
from doors.browser import Inbox
from doors.served import Caller, good
from doors.waiting import announced, approval_of, asked, decide, lose, running
from playwright.sync_api import Page, Route, expect
from rows.stage import Stage, call

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.session.call_input import CallInput
from models.session.grant import Grant
from models.session.tool_call import ToolCall

FORM = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "title": "E-mail"},
        "count": {"type": "integer", "default": 2},
        "urgent": {"type": "boolean"},
        "size": {"type": "string", "enum": ["small", "large"]},
        "note": {"type": "string"},
        "wants": {"type": "array", "items": {"enum": ["tea", "cake"]}},
    },
    "required": ["email", "count", "urgent", "size"],
}
ASKS = {"who": {"message": "For whom?", "schema": FORM}, "page": {"message": "Sign in there.", "url": "https://bank.example/in"}}


def shown_to(stage: Stage) -> list[str]:
    """The hashes that decisions say were shown, in the audit."""
    with transaction(stage.workspace_id) as db:
        return [act.details["shown_sha256"] for act in db.find(Audit, "WHERE action = %(action)s", action="approval.decided")]


# Answers


CHOICES: dict[str, tuple[Callable[[Inbox], None], str, dict[str, Any]]] = {
    "once": (lambda p: p.button("Allow").click(), "allowed", {"result": "allow"}),
    "deny": (lambda p: p.button("Deny").click(), "denied", {"result": "deny"}),
}


def choice(name: str, status: str, **decision: Any) -> Callable[[Callable[[Inbox], None]], Callable[[Inbox], None]]:
    """What a person does, and the decision that it is."""

    def keep(act: Callable[[Inbox], None]) -> Callable[[Inbox], None]:
        CHOICES[name] = act, status, decision
        return act

    return keep


@choice("deny with a message", "denied", result="deny", deny_message="Not on a Friday.\nAsk me on Monday.")
def _message(person: Inbox) -> None:
    person.page.get_by_label("Message to the agent").fill("Not on a Friday.\nAsk me on Monday.")
    person.button("Deny").click()


@choice("deny and end the run", "denied", result="deny", interrupt=True)
def _end(person: Inbox) -> None:
    person.button("Deny and end the run").click()


@choice("for this session", "allowed", result="allow", scope="session", match="tool")
def _session(person: Inbox) -> None:
    person.page.get_by_label("session: for the rest of this session").check()
    expect(person.page.get_by_text("It covers every call of bash")).to_be_visible()
    person.button("Allow").click()


@choice(
    "always, exactly this, three times within an hour",
    "allowed",
    result="allow",
    scope="always",
    match="exact",
    max_uses=3,
    expires_in_seconds=3600,
)
def _always(person: Inbox) -> None:
    person.page.get_by_label("always: in every session of this agent").check()
    person.page.get_by_label("only this exact input of bash").check()
    expect(person.page.get_by_text("It covers only this exact input of bash")).to_be_visible()
    person.page.get_by_label("Uses").fill("3")
    person.page.get_by_label("How long").select_option("1 hour")
    person.button("Allow").click()


@choice("always, by a rule", "allowed", result="allow", scope="always", match="bash(ls *)")
def _rule(person: Inbox) -> None:
    person.page.get_by_label("always: in every session of this agent").check()
    person.page.get_by_label("Rule", exact=True).fill("bash(ls *)")
    expect(person.page.get_by_text("It covers every bash command that starts with `ls`")).to_be_visible()
    person.button("Allow").click()


@choice("answer in its place", "answered", result="allow", respond=[{"type": "text", "text": "3 files"}])
def _respond(person: Inbox) -> None:
    person.unfold("Answer in the tool's place")
    person.page.get_by_label("The result").fill("3 files")
    person.button("Give this as the result").click()


@pytest.mark.parametrize("name", CHOICES)
def test_each_answer_is_the_decision_that_it_says(
    person: Inbox, caller: Caller, stage: Stage, shown: Any, waiting: ToolCall, name: str
) -> None:
    act, status, decision = CHOICES[name]
    act(person)
    assert person.decided(status)
    approval = approval_of(caller, waiting)
    made = {name: value for name, value in approval["decision"].items() if value is not None}
    assert (approval["status"], made) == (status, decision)
    expect(person.page.get_by_text("Nothing else waits.")).to_be_visible()
    assert shown_to(stage) == [approval["input_sha256"]], "it is bound to what was shown"


def test_an_edited_input_runs_instead(person: Inbox, shown: Any, caller: Caller, stage: Stage, waiting: ToolCall) -> None:
    person.unfold("Edit the input, then allow")
    box = person.page.get_by_role("textbox", name="Input")
    assert box.input_value() == '{\n  "command": "ls -l"\n}'
    box.fill('{"command": ')
    person.button("Allow this instead").click()
    expect(person.page.get_by_text("The input is no JSON")).to_be_visible()
    for wrong, why in (("null", "no JSON object"), ("[1]", "no JSON object"), ('{"n": 1e400}', "n has a number that is too large")):
        box.fill(wrong)
        person.button("Allow this instead").click()
        expect(person.page.get_by_text(why)).to_be_visible()
    box.fill('{"command": "ls -la"}')
    person.button("Allow this instead").click()
    assert "ls -la" in person.decided("allowed")
    assert stage.get(CallInput, waiting.id).input == {"command": "ls -la"}


def test_what_a_grant_covers_is_said_before_it_is_given(person: Inbox, caller: Caller, stage: Stage) -> None:
    first, _other = asked(caller, stage, call(command="ls -l"), call(command="ls -la"))
    person.open(approval_of(caller, first)["id"])
    person.page.get_by_label("session: for the rest of this session").check()
    expect(person.page.get_by_text("known to run no others), for the rest of this session. 1 more that waits")).to_be_visible()
    person.page.get_by_label("Rule", exact=True).fill("no rule at all(")
    expect(person.page.get_by_text("match: ")).to_be_visible()
    with transaction(stage.workspace_id) as db:
        assert not len(db.find(Grant))


def test_a_grant_is_not_given_before_what_it_covers_was_said(person: Inbox, caller: Caller, shown: Any, waiting: ToolCall) -> None:
    """However quick the hand is, or slow the server."""
    person.page.get_by_label("always: in every session of this agent").check()
    expect(person.page.get_by_text("It covers every call of bash")).to_be_visible()
    type_and_click = """rule => {
        const box = document.querySelector("[aria-label=Rule]");
        box.value = rule;
        box.dispatchEvent(new Event("input", { bubbles: true }));
        box.form.querySelector("button").click();
    }"""
    person.page.evaluate(type_and_click, "bash(ls *)")
    expect(person.page.get_by_text("It covers every bash command that starts with `ls`")).to_be_visible()
    assert approval_of(caller, waiting)["status"] == "pending"
    person.page.evaluate(type_and_click, "no rule at all(")
    expect(person.page.get_by_text("match: ")).to_be_visible()
    person.button("Allow").click()
    person.button("Allow").click()
    expect(person.page.get_by_text("match: ")).to_be_visible()
    assert approval_of(caller, waiting)["status"] == "pending"


def test_a_grant_whose_reach_could_not_be_said_is_not_given(person: Inbox, caller: Caller, shown: Any, waiting: ToolCall) -> None:
    person.page.route("**/preview", lambda route: route.abort())
    person.page.get_by_label("session: for the rest of this session").check()
    told = person.page.get_by_role("status").get_by_text("does not answer")
    expect(told).to_be_visible()
    with person.page.expect_request("**/preview"):
        person.button("Allow").click()
    expect(told).to_be_visible()
    assert approval_of(caller, waiting)["status"] == "pending"


def test_a_grant_is_not_given_by_a_hand_that_was_down_before_it_was_said(
    person: Inbox, caller: Caller, shown: Any, waiting: ToolCall
) -> None:
    person.page.get_by_label("session: for the rest of this session").check()
    expect(person.page.get_by_text("It covers every call of bash")).to_be_visible()
    person.page.get_by_label("Rule", exact=True).fill("bash(ls *)")
    person.button("Allow").hover()
    person.page.mouse.down()
    expect(person.page.get_by_text("It covers every bash command that starts with `ls`")).to_be_visible()
    person.page.mouse.up()
    expect(person.page.get_by_text("It covers every bash command that starts with `ls`")).to_be_visible()
    assert approval_of(caller, waiting)["status"] == "pending"


def test_only_the_last_preview_is_shown(person: Inbox, shown: Any) -> None:
    """Whichever answer comes last."""
    held_back: list[Route] = []
    person.page.route("**/preview", lambda route: held_back.append(route), times=1)  # noqa: PLW0108 - Playwright marks it
    person.page.get_by_label("session: for the rest of this session").check()
    person.page.get_by_label("only this exact input of bash").check()
    expect(person.page.get_by_text("It covers only this exact input of bash")).to_be_visible()
    with person.page.expect_response("**/preview"):
        held_back[0].continue_()
    expect(person.page.get_by_text("It covers only this exact input of bash")).to_be_visible()
    assert person.page.get_by_text("It covers every call").count() == 0


def test_nothing_can_be_pressed_twice(person: Inbox, shown: Any) -> None:
    held_back: list[Route] = []
    person.page.route("**/decision", lambda route: held_back.append(route))  # noqa: PLW0108 - Playwright marks it
    person.button("Allow").click()
    for name in ("Allow", "Deny", "Deny and end the run"):
        expect(person.button(name)).to_be_disabled()
    held_back[0].continue_()
    assert person.decided("allowed")


def test_who_was_slower_is_told_who_was_quicker(person: Inbox, caller: Caller, waiting: ToolCall) -> None:
    approval = approval_of(caller, waiting)
    person.page.route("**/decision", lambda route: (decide(caller, waiting, result="deny"), route.continue_())[1])
    person.open(approval["id"])
    person.button("Allow").click()
    assert "denied" in person.decided("denied")
    expect(person.page.get_by_text("already denied")).to_be_visible()


def test_an_input_that_is_not_what_its_hash_stands_for_cannot_be_decided(person: Inbox, caller: Caller, waiting: ToolCall) -> None:
    approval = approval_of(caller, waiting)

    def change(route: Route) -> None:
        said = route.fetch().json()
        route.fulfill(json=said | {"input_canonical": '{"command":"ls"}'})

    def change_all(route: Route) -> None:
        said = route.fetch().json()
        route.fulfill(json=said | {"data": [row | {"input_canonical": '{"command":"ls"}'} for row in said["data"]]})

    person.page.route(f"**/v1/approvals/{approval['id']}", change)
    person.page.route("**/v1/approvals?**", change_all)
    person.open(approval["id"])
    expect(person.page.get_by_text("is not the one that would run")).to_be_visible()
    expect(person.button("Allow")).to_have_count(0)
    person.open("?tool=bash")
    expect(person.rows).to_have_count(1)
    expect(person.page.get_by_role("checkbox")).to_have_count(0)


def test_more_time_moves_the_deadline_and_nothing_that_was_typed(
    person: Inbox, shown: Any, caller: Caller, waiting: ToolCall
) -> None:
    person.page.get_by_label("Message to the agent").fill("I am thinking")
    person.unfold("More time")
    person.page.get_by_label("From now").select_option("7 days")
    person.button("Extend").click()
    expect(person.page.get_by_text("in 6 days, then it is not run")).to_be_visible()
    assert approval_of(caller, waiting)["expires_at"] > shown["expires_at"]
    expect(person.page.get_by_label("Message to the agent")).to_have_value("I am thinking")


UNKNOWN: dict[str, tuple[Callable[[Page], None], str, str]] = {
    "It happened": (lambda page: page.get_by_label("The result").fill("it printed 42"), "Tell the agent this result", "happened"),
    "Run it again": (lambda page: page.on("dialog", lambda dialog: dialog.accept()), "Run it again", "rerun"),
    "Give up": (lambda _page: None, "Give up", "give_up"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_outcome_is_settled(person: Inbox, caller: Caller, stage: Stage, waiting: ToolCall, name: str) -> None:
    prepare, button, outcome = UNKNOWN[name]
    decide(caller, waiting, result="allow")
    lose(stage, waiting)
    person.open(approval_of(caller, waiting)["id"])
    expect(person.page.get_by_text("nobody knows whether it took effect")).to_be_visible()
    prepare(person.page)
    person.button(button).click()
    expect(person.page.get_by_text(f"Outcome: {outcome}")).to_be_visible()
    assert approval_of(caller, waiting)["decision"]["outcome"] == outcome


def test_an_unknown_outcome_is_not_run_again_by_a_slip_of_the_hand(
    person: Inbox, caller: Caller, stage: Stage, waiting: ToolCall
) -> None:
    decide(caller, waiting, result="allow")
    lose(stage, waiting)
    person.open(approval_of(caller, waiting)["id"])
    asked_again: list[str] = []
    person.page.on("dialog", lambda dialog: (asked_again.append(dialog.message), dialog.dismiss())[1])
    person.button("Run it again").click()
    assert "may have happened already" in asked_again[0]
    assert approval_of(caller, waiting)["status"] == "pending"


@pytest.mark.parametrize("how", ["Answer, and let it go on", "Decline to answer", "Deny: it does not go on"])
def test_what_a_tool_asks_is_answered(person: Inbox, caller: Caller, stage: Stage, how: str) -> None:
    found = announced(caller, stage)
    stage.finish_call(running(caller, stage, found), question={"requests": ASKS, "state": None})
    approval = approval_of(caller, found)
    person.open(approval["id"])
    page = person.page
    if how.startswith("Answer"):
        page.get_by_label("E-mail").fill("a@b.example")
        page.get_by_label("urgent").select_option("true")
        page.get_by_label("size").select_option("large")
        page.get_by_label("wants").select_option("cake")
        person.button(how).click()
        expect(page.get_by_text("Go there first")).to_be_visible()
        expect(page.get_by_role("link", name="https://bank.example/in")).to_have_attribute("rel", "noopener noreferrer")
        page.get_by_label("I have been there").check()
    person.button(how).click()
    person.decided("denied" if how.startswith("Deny") else "answered")
    form: dict[str, Any] = {"email": "a@b.example", "count": 2, "urgent": True, "size": "large", "wants": ["cake"]}
    expected = {
        "Answer": {"who": {"action": "accept", "content": form}, "page": {"action": "accept"}},
        "Decline": {"who": {"action": "decline"}, "page": {"action": "decline"}},
        "Deny:": None,
    }[how.split(maxsplit=1)[0].rstrip(",")]
    assert stage.get(CallInput, found.id).answers == expected


def test_an_answer_that_is_not_what_was_asked_for_is_refused_and_stays(person: Inbox, caller: Caller, stage: Stage) -> None:
    found = announced(caller, stage)
    stage.finish_call(running(caller, stage, found), question={"requests": {"who": ASKS["who"]}, "state": None})
    person.open(approval_of(caller, found)["id"])
    person.page.get_by_label("count").fill("2.5")
    person.button("Answer, and let it go on").click()
    expect(person.page.get_by_text("answers.who")).to_be_visible()
    expect(person.page.get_by_label("count")).to_have_value("2.5")


# Beyond one answer


def test_a_decision_that_is_refused_for_now_can_be_made_again(person: Inbox, caller: Caller, shown: Any, waiting: ToolCall) -> None:
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "The server is busy."}}
    person.page.route("**/decision", lambda route: route.fulfill(status=503, json=busy), times=1)
    person.button("Allow").click()
    expect(person.page.get_by_text("The server is busy.")).to_be_visible()
    person.button("Allow").click()
    assert "allowed" in person.decided("allowed")


def test_a_deadline_that_passes_while_it_is_open_is_told(
    person: Inbox, caller: Caller, shown: Any, waiting: ToolCall, clock: Any
) -> None:
    expect(person.button("Allow")).to_be_enabled()
    clock.advance(2 * 86_400)
    person.button("Allow").click()
    assert "expired" in person.decided("expired")
    assert approval_of(caller, waiting)["status"] == "expired"


def test_what_was_given_is_seen_and_taken_back(person: Inbox, caller: Caller, waiting: ToolCall) -> None:
    given = decide(caller, waiting, result="allow", scope="always", max_uses=3)["grant"]
    person.open("grants")
    expect(person.rows).to_have_count(1)
    expect(person.rows.first).to_contain_text(f"known to run no others), in every session of {given['agent_id']}")
    expect(person.rows.first).to_contain_text("0 of 3 uses")
    person.page.get_by_role("link", name="with this approval").click()
    assert "every call of bash" in person.decided("allowed")
    person.open("grants")
    person.button("Revoke").click()
    expect(person.page.get_by_text("Nothing runs unasked by a grant.")).to_be_visible()
    assert not good(caller.get(f"/v1/grants/{given['id']}"))["live"]


@pytest.mark.parametrize(("button", "status"), [("Allow 2", "allowed"), ("Deny 2", "denied")])
def test_several_are_decided_together_each_with_its_input_in_sight(
    person: Inbox, caller: Caller, stage: Stage, button: str, status: str
) -> None:
    calls = asked(caller, stage, call(command="echo one"), call(command="echo two"), call(command="echo three"))
    boxes = person.page.get_by_role("checkbox")
    expect(boxes).to_have_count(3)
    for number in (0, 2):
        boxes.nth(number).check()
        expect(person.rows.nth(number).locator("dl.input")).to_be_visible()
    person.button(button).click()
    expect(person.rows).to_have_count(1)
    approvals = [approval_of(caller, found) for found in calls]
    assert [approval["status"] for approval in approvals] == [status, "pending", status]
    assert sorted(shown_to(stage)) == sorted(approval["input_sha256"] for approval in approvals if approval["status"] == status)


def test_only_calls_that_wait_can_be_decided_together(person: Inbox, caller: Caller, stage: Stage) -> None:
    found = announced(caller, stage)
    stage.finish_call(running(caller, stage, found), question={"requests": ASKS, "state": None})
    for place in ("", "?status=allowed"):
        person.open(place)
        expect(person.rows).to_have_count(1)
        expect(person.page.get_by_role("checkbox")).to_have_count(0)


def test_of_several_none_is_decided_if_one_cannot_be(person: Inbox, caller: Caller, stage: Stage) -> None:
    one, other = asked(caller, stage, call(command="echo one"), call(command="echo two"))
    person.page.route("**/decisions", lambda route: (decide(caller, other, result="deny"), route.continue_())[1])
    boxes = person.page.get_by_role("checkbox")
    expect(boxes).to_have_count(2)
    boxes.nth(0).check()
    boxes.nth(1).check()
    person.button("Allow 2").click()
    expect(person.page.get_by_text("None of the decisions was made")).to_be_visible()
    assert approval_of(caller, one)["status"] == "pending"
