"""`assent approvals` for a question of a tool, and for a call whose outcome is unknown."""

import pytest
from local.conftest import Assent
from own_database import Clock
from rows.stage import Stage, call, entry

from models.session.tool_call.attempt import Attempt
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall
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
    """A call that asks two questions, behind another call that waits to be allowed."""
    toolset.announce({"orders": [entry("order")]})
    session = stage.session(servers={"shop": "assent:orders"}, shop="always_allow", bash="always_ask")
    stage.message(session)
    _, tool_call = stage.reply(session, call(), call("mcp__shop__order", n=1))
    held = stage.claim_call(tool_call)
    assert held
    stage.finish_call(held, "", question={"requests": REQUESTS, "state": "s"})
    return tool_call


def test_a_form_is_asked_field_by_field_and_a_page_is_named(assent: Assent, stage: Stage, parked: ToolCall) -> None:
    """An optional field may be left out, and a value of the wrong kind is asked for again."""
    shown = assent("approvals", typed="9\n1\ny\na@b.example\nhuge\nlarge\nsome\n3\n\n\n")
    assert "Who <U+202E>is it for?" in shown
    assert "Where to write." in shown
    assert "https://pay.example/1" in shown
    content = {"email": "a@b.example", "size": "large", "count": 3, "express": False}
    answers = stage.get(CallInput, parked.id).answers
    assert answers == {"who": {"action": "accept", "content": content}, "pay": {"action": "accept"}}
    assert stage.get(ToolCall, parked.id).status == "queued"


@pytest.mark.parametrize(("typed", "status"), [("2\n", "queued"), ("3\n", "denied"), ("9\n", "asked")])
def test_a_question_can_be_declined_denied_or_skipped(
    assent: Assent, stage: Stage, parked: ToolCall, typed: str, status: str
) -> None:
    assent("approvals", typed=f"9\n{typed}")
    assert stage.get(ToolCall, parked.id).status == status
    answers = stage.get(CallInput, parked.id).answers
    assert answers == ({key: {"action": "decline"} for key in REQUESTS} if status == "queued" else None)


def test_programs_answer_with_json(assent: Assent, stage: Stage, parked: ToolCall) -> None:
    approval = stage.approvals(parked.session_id)[-1]
    wrong = assent("approvals", "decide", approval.id, "--allow", "--answers", "{", code=2)
    assert "it is not JSON" in wrong
    assent("approvals", "decide", approval.id, "--allow", "--answers", '{"who": {"action": "cancel"}, "pay": {"action": "cancel"}}')
    assert stage.get(ToolCall, parked.id).status == "queued"


def test_an_unknown_outcome_is_shown_with_the_output_so_far(
    assent: Assent,
    stage: Stage,
    clock: Clock,
) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    [tool_call] = stage.reply(session, call())
    held = stage.claim_call(tool_call)
    assert held
    Attempt.say(held, "line one\nline \x1b[2Jtwo")
    clock.advance(60)
    stage.rescue(held)
    shown = assent("approvals", typed="9\n")
    assert "Attempt 1 of this call, by worker, " in shown
    assert "printed   line <U+001B>[2Jtwo" in shown
