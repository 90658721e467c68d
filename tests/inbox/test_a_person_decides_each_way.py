"""Each answer on a card is the decision that its button names, bound to the input that the card showed."""

from collections.abc import Callable
from typing import Any

import pytest
from inbox.linked import decided_by
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked, asks_back, status, unknown_outcome
from playwright.sync_api import expect
from rows.crew import Crew, send
from rows.stage import Stage, call

from models.session.approval.row import Approval
from models.session.tool_call.input import CallInput

CHOICES: dict[str, tuple[Callable[[Visitor], None], str, dict[str, Any]]] = {}


def choice(name: str, status: str, **decision: Any) -> Callable[[Callable[[Visitor], None]], Callable[[Visitor], None]]:
    """Register an act of a person, with the status and the decision that it leads to."""

    def keep(act: Callable[[Visitor], None]) -> Callable[[Visitor], None]:
        CHOICES[name] = act, status, decision
        return act

    return keep


@choice("allow once", "allowed", result="allow")
def _allow(person: Visitor) -> None:
    person.window.control_time()
    person.button("Allow once").click()
    expect(person.page).to_have_title("(1) Inbox · Assent")
    person.page.clock.run_for(5100)


@choice("allow for this session", "allowed", result="allow", scope="session", match="tool")
def _session(person: Visitor) -> None:
    person.window.control_time()
    person.more()
    person.button("Allow for this session").click()
    expect(person.page).to_have_title("(1) Inbox · Assent")
    person.page.clock.run_for(5100)


@choice("deny", "denied", result="deny")
def _deny(person: Visitor) -> None:
    person.deny()


@choice("deny with a message", "denied", result="deny", deny_message="Not on a Friday.\nAsk me on Monday.")
def _message(person: Visitor) -> None:
    person.deny("Not on a Friday.\nAsk me on Monday.")


@choice("deny with a reason of the workspace", "denied", result="deny", deny_message="Say first why you need this.")
def _reason(person: Visitor) -> None:
    person.page.locator("details.deny > summary").click()
    person.button("Say first why you need this.").click()


@choice("deny and end the run", "denied", result="deny", interrupt=True)
def _end(person: Visitor) -> None:
    person.deny(button="Deny and end the run")


@choice("answer instead", "answered", result="allow", respond=[{"type": "text", "text": "3 files"}])
def _respond(person: Visitor) -> None:
    person.more()
    person.unfold("Answer instead…")
    person.page.get_by_label("The result").fill("3 files")
    person.button("Give this as the result").click()


@choice(
    "always, three times within an hour",
    "allowed",
    result="allow",
    scope="always",
    match="exact",
    max_uses=3,
    expires_in_seconds=3600.0,
)
def _always(person: Visitor) -> None:
    person.more()
    person.page.get_by_role("link", name="Always allow…").click()
    person.page.get_by_label("Covers only this exact input of bash").check()
    person.page.get_by_label("In every session of this agent").check()
    person.page.get_by_label("How long").select_option("1 hour")
    person.page.get_by_label("For how many calls").fill("3")
    person.button("Allow this call, and always those").click()


@choice("always, by a pattern of one's own", "allowed", result="allow", scope="session", match="bash(ls -l *)")
def _pattern(person: Visitor) -> None:
    person.more()
    person.page.get_by_role("link", name="Always allow…").click()
    person.page.get_by_label("A pattern of your own").fill("bash(ls -l *)")
    person.button("Show what it covers").click()
    expect(person.page.get_by_text("Covers every bash command that starts with ls -l")).to_be_visible()
    person.button("Allow this call, and always those").click()


@pytest.mark.parametrize("name", CHOICES)
def test_each_answer_is_the_decision_that_its_button_names(admin: Visitor, stage: Stage, name: str) -> None:
    act, status_after, decision = CHOICES[name]
    [approval] = asked(stage)
    admin.open(f"/inbox/approvals/{approval.id}")
    act(admin)
    expect(admin.page.get_by_text("by admin0").first).to_be_visible()
    row = stage.get(Approval, approval.id)
    assert (row.status, row.decision, row.decided_by) == (status_after, decision, str(admin.somebody.principal))
    assert decided_by(stage, approval).details["shown_sha256"] == approval.input_sha256


def test_an_edited_input_runs_instead(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage)
    plain.open(f"/inbox/approvals/{approval.id}/edit")
    plain.fill("timeout_ms", "soon")
    plain.press("Allow once with this input")
    assert "Write a number" in plain.page.one("[id='fault-input.timeout_ms']")
    plain.fill("timeout_ms", "50")
    plain.fill("command", "ls -la")
    plain.press("Allow once with this input")
    assert "Allowed with another input" in plain.page.one("#decided")
    assert stage.get(CallInput, approval.tool_call_id).input == {"command": "ls -la", "timeout_ms": 50}


def test_an_input_is_edited_as_json(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage)
    plain.open(f"/inbox/approvals/{approval.id}/edit?as=json")
    assert plain.page.field("The whole input").value == '{\n  "command": "ls -l"\n}'
    for wrong, why in (
        ('{"command": ', "must be JSON"),
        ("[1]", "must be a JSON object"),
        ('{"n": 1e400}', "too large"),
        ('{"n": ' + "[" * 200 + "1" + ", 1" * 5000 + "]" * 200 + "}", "nested deeper than 64 levels"),
        ('{"command": "\\u0000"}', "NUL"),
        ('{"command": "ls", "command": "rm -rf x"}', "appears twice"),
        ('{"n": 1}', "schema"),
    ):
        plain.fill("The whole input", wrong)
        plain.press("Allow once with this input")
        assert why in plain.page.one("main")
        assert plain.page.field("The whole input").value == wrong, "the form keeps the text"
    plain.fill("The whole input", '{"command": "ls -la"}')
    plain.press("Allow once with this input")
    assert "Allowed with another input" in plain.page.one("#decided")


def test_a_grant_says_what_it_covers_and_how_many_calls_it_releases(plain: Plain, stage: Stage) -> None:
    first, _other = asked(stage, call(command="git push origin main"), call(command="git push origin dev"))
    plain.open(f"/inbox/approvals/{first.id}/always")
    released = "Releases 1 other call that waits in this session, 1 in all sessions"
    assert released in plain.page.one("label", "bash(git push *)")
    assert "No other call that waits is released" in plain.page.one("label", "only this exact input")
    plain.fill("A pattern of your own", "no pattern(")
    plain.press("Show what it covers")
    assert "match" in plain.page.one("[role=alert]")


def test_a_grant_says_whose_calls_it_covers_before_and_after(plain: Plain, stage: Stage) -> None:
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader"), send("Writer"))
    for number in (0, 1):
        crew.replies(call(command="ls"), number=number)
    approval = stage.approvals(crew.session_id)[0]
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "Lead › Reader wants to run a shell command" in plain.page.one("main")
    assert "calls of the agent Reader, version 1, in this session" in plain.page.one("main")
    plain.follow("Always allow…")
    assert "Releases 1 other call of this session" in plain.page.one("label", "every call of bash")
    plain.check("In this session, for all its agents")
    plain.press("Allow this call, and always those")
    assert "Allowed" in plain.page.one("#decided")
    plain.open("/inbox/grants")
    assert "calls of every agent, with all sub-agents" in plain.page.one("main")


def test_more_time_moves_the_deadline(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage)
    plain.open(f"/inbox/approvals/{approval.id}")
    plain.fill("The new deadline, from now", "7 days")
    plain.press("Extend the deadline")
    assert "6 days left" in plain.page.one("#deadline")
    assert stage.get(Approval, approval.id).expires_at > approval.expires_at


UNKNOWN: dict[str, tuple[Callable[[Plain], None], str, str]] = {
    "Tell the agent this result": (
        lambda person: person.fill("The result", "it printed 42"),
        "happened",
        "Confirmed as done by",
    ),
    "Run again": (lambda person: person.check("Run it again"), "rerun", "Sent to run again by"),
    "Give up": (lambda _: None, "give_up", "Given up by"),
}


@pytest.mark.parametrize("button", UNKNOWN)
def test_an_unknown_outcome_is_settled(plain: Plain, stage: Stage, button: str) -> None:
    prepare, outcome, words = UNKNOWN[button]
    approval = unknown_outcome(stage)
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "nobody knows whether the call took effect" in plain.page.one("h1")
    prepare(plain)
    plain.press(button)
    assert words in plain.page.one("#decided")
    decision = stage.get(Approval, approval.id).decision
    assert decision
    assert decision["outcome"] == outcome


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


@pytest.mark.parametrize("how", ["Answer", "Decline", "Deny"])
def test_a_tool_s_question_is_answered_declined_or_denied(plain: Plain, stage: Stage, how: str) -> None:
    approval = asks_back(stage, ASKS)
    plain.open(f"/inbox/approvals/{approval.id}")
    if how == "Answer":
        plain.press(how)
        assert plain.page.one("[id='fault-q0.email']").text == "This is needed."
        assert "Go there first" in plain.page.one("main")
        plain.fill("E-mail", "a@b.example")
        plain.fill("urgent", "true")
        plain.fill("size", "large")
        plain.fill("wants", "cake")
        assert plain.page.one("a", name="https://bank.example/in").get("rel") == "noopener noreferrer"
        plain.check("I have been there")
    plain.press(how)
    assert plain.page.all("#decided")
    assert status(stage, approval) == ("denied" if how == "Deny" else "answered")
    form = {"email": "a@b.example", "count": 2, "urgent": True, "size": "large", "wants": ["cake"]}
    expected = {
        "Answer": {"who": {"action": "accept", "content": form}, "page": {"action": "accept"}},
        "Decline": {"who": {"action": "decline"}, "page": {"action": "decline"}},
    }
    assert stage.get(CallInput, approval.tool_call_id).answers == expected.get(how)
    plain.open(f"/inbox/approvals/{approval.id}")
    ending = {"Answer": "Answered by", "Decline": "Declined by", "Deny": "Denied by"}[how]
    assert ending in plain.page.one("#outcome")
    assert "For whom?" in plain.page.one("section", name="What the tool asked")
