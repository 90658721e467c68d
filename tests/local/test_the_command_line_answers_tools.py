"""`assent approvals` where a tool asks something, and where nobody knows how a call ended."""

from collections.abc import Callable
from typing import Any

import pytest
from doors.served import Caller
from local.test_the_command_line_decides import Assent, assent, caller  # noqa: F401 - fixtures
from rows.stage import Stage, call, entry

from models.session.attempt import Attempt
from models.session.call_input import CallInput
from models.session.tool_call import ToolCall
from models.workspace import toolset

FORM = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "title": "E-mail", "description": "Where to write."},
        "size": {"type": "string", "enum": ["small", "large"]},
        "count": {"type": "integer"},
        "express": {"type": "boolean", "default": False},
        "note": {"type": "string"},
    },
    "required": ["email", "size"],
}
REQUESTS = {
    "who": {"message": "Who \u202eis it for?", "schema": FORM},
    "pay": {"message": "Pay here.", "url": "https://pay.example/1"},
}


@pytest.fixture
def parked(stage: Stage) -> ToolCall:
    """A call that asks two things, behind one that waits to be allowed."""
    toolset.announce({"orders": [entry("order")]})
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow", bash="always_ask")
    stage.message(session)
    _, found = stage.reply(session, call(), call("mcp__shop__order", n=1))
    held = stage.claim_call(found)
    assert held
    stage.finish_call(held, "", question={"requests": REQUESTS, "state": "s"})
    return found


def test_a_form_is_asked_field_by_field_and_a_page_is_named(assent: Assent, stage: Stage, parked: ToolCall) -> None:  # noqa: F811
    """What is optional may be left out, and what is of the wrong kind is asked once more."""
    shown = assent("approvals", typed="9\n1\ny\na@b.example\nhuge\nlarge\nsome\n3\n\n\n")
    assert "Who <U+202E>is it for?" in shown
    assert "Where to write." in shown
    assert "https://pay.example/1" in shown
    said = stage.get(ToolCall, parked.id)
    content = {"email": "a@b.example", "size": "large", "count": 3, "express": False}
    answers = stage.get(CallInput, parked.id).answers
    assert answers == {"who": {"action": "accept", "content": content}, "pay": {"action": "accept"}}
    assert said.status == "queued"


@pytest.mark.parametrize(("typed", "status"), [("2\n", "queued"), ("3\n", "denied"), ("9\n", "asked")])
def test_it_can_be_declined_denied_or_left(assent: Assent, stage: Stage, parked: ToolCall, typed: str, status: str) -> None:  # noqa: F811
    assent("approvals", typed=f"9\n{typed}")
    said = stage.get(ToolCall, parked.id)
    assert said.status == status
    answers = stage.get(CallInput, parked.id).answers
    assert answers == ({key: {"action": "decline"} for key in REQUESTS} if status == "queued" else None)


def test_programs_answer_with_json(assent: Assent, caller: Caller, stage: Stage, parked: ToolCall) -> None:  # noqa: F811
    approval = stage.approvals(parked.session_id)[-1]
    wrong = assent("approvals", "decide", approval.id, "--allow", "--answers", "{", code=2)
    assert "it is not JSON" in wrong
    assent("approvals", "decide", approval.id, "--allow", "--answers", '{"who": {"action": "cancel"}, "pay": {"action": "cancel"}}')
    assert stage.get(ToolCall, parked.id).status == "queued"


def test_of_an_unknown_outcome_it_is_shown_what_is_known(
    assent: Assent,  # noqa: F811
    stage: Stage,
    clock: Any,
    caller: Callable[..., Any],  # noqa: F811
) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    [found] = stage.reply(session, call())
    held = stage.claim_call(found)
    assert held
    Attempt.say(stage.workspace_id, held.id, held.attempt, "line one\nline \x1b[2Jtwo")
    clock.advance(60)
    stage.rescue(held)
    shown = assent("approvals", typed="9\n")
    assert "Attempt 1 of this call, by worker, " in shown
    assert "printed   line <U+001B>[2Jtwo" in shown
