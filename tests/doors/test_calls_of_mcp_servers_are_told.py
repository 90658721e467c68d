"""Events of MCP tool calls, their questions and results: readable by every client of the SDK, with our additional fields."""

from typing import Any

import pytest
from anthropic import Anthropic
from doors.served import Caller, bad, confirmation, good
from doors.waiting import approval_of, by_event, decide, running
from rows.stage import Stage, call, entry, say

from models.flow.run.results import Outcome, finish_call, lose_call
from models.flow.run.turns import TurnFailure, fail_turn
from models.pure.json.canonical import digest
from models.session.locked import Locked
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall
from models.workspace import toolset

HINTS = {"readOnlyHint": False, "destructiveHint": True}
FORM = {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}
ONE = {"reason": {"message": "Why?", "schema": FORM}}
TWO = ONE | {"sign in": {"message": "Sign in.", "url": "https://example.org/sign-in"}}
WHY = {"why": "Because."}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
PAGE = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "title": "Bill"}


@pytest.fixture
def session_id(caller: Caller) -> str:
    """A session with a message. Its agent has a toolset of the operator: `look` is allowed, other calls ask."""
    cache = {"seconds": 60, "scope": "session"}
    toolset.announce({"billing": [entry("refund", annotations=HINTS), entry("look", idempotent=True, cache=cache)]})
    configs = [{"name": "look", "permission_policy": {"type": "always_allow"}}]
    agent = caller.agent(
        mcp_servers=[{"type": "url", "name": "bills", "url": "assent:billing"}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "bills", "configs": configs}],
    )
    created: str = caller.session(agent)["id"]
    caller.say(created)
    return created


@pytest.fixture
def refund(stage: Stage, session_id: str) -> ToolCall:
    """A waiting call of `refund`."""
    return stage.reply(session_id, call("mcp__bills__refund", n=5))[0]


def finish(stage: Stage, held: ToolCall, *content: dict[str, Any], structured: dict[str, Any] | None = None) -> None:
    """Finish a running call with this result."""

    def verb(locked: Locked) -> None:
        finish_call(locked, held.as_held(locked.db), Outcome(list(content), False, structured))

    stage.locked(held.session_id, verb)


def asking(caller: Caller, stage: Stage, tool_call: ToolCall, requests: dict[str, Any]) -> dict[str, Any]:
    """Let the allowed call ask these questions. Returns the approval that asks them."""
    stage.finish_call(running(caller, stage, tool_call), question={"requests": requests, "state": None})
    return approval_of(caller, tool_call)


def events(caller: Caller, strict: Anthropic, session_id: str, kind: str) -> list[dict[str, Any]]:
    """Return the session's events of a type, as the strict SDK reads them."""
    listed: list[Any] = list(strict.beta.sessions.events.list(session_id))
    parsed = [event.to_dict(mode="json") for event in listed if event.type == kind]
    assert [event["id"] for event in parsed] == [event["id"] for event in caller.events(session_id, types=kind)]
    return parsed


def test_a_call_has_the_server_s_own_names_of_tool_and_server(caller: Caller, strict: Anthropic, refund: ToolCall) -> None:
    [used] = events(caller, strict, refund.session_id, "agent.mcp_tool_use")
    assert (used["id"], used["name"], used["mcp_server_name"], used["input"]) == (refund.id, "refund", "bills", {"n": 5})
    assert (used["evaluated_permission"], used["evaluation"]) == ("ask", {"type": "always_ask"})
    assert (used["approval"]["kind"], used["approval"]["annotations"]) == ("tool_call", HINTS)
    [asked] = caller.events(refund.session_id, include="approvals", types="approval.requested")
    assert asked["annotations"] == HINTS
    approval = approval_of(caller, refund)
    assert (approval["annotations"], approval["questions"], approval["attempt"]) == (HINTS, None, None)


def test_a_result_may_hold_pictures_documents_and_data(caller: Caller, stage: Stage, strict: Anthropic, refund: ToolCall) -> None:
    held = running(caller, stage, refund)
    finish(stage, held, say("5 refunded."), PICTURE, PAGE, structured={"refunded": 5, "note": None})
    [result] = events(caller, strict, refund.session_id, "agent.mcp_tool_result")
    assert (result["mcp_tool_use_id"], result["is_error"]) == (refund.id, False)
    assert [block["type"] for block in result["content"]] == ["text", "image", "document"]
    assert result["structured_content"] == {"refunded": 5, "note": None}


def test_a_cached_result_names_the_call_that_produced_it(caller: Caller, stage: Stage, strict: Anthropic, session_id: str) -> None:
    first = stage.reply(session_id, call("mcp__bills__look", n=1))[0]
    stage.run_call(first, "fine")
    again = stage.reply(session_id, call("mcp__bills__look", n=1))[0]
    assert stage.claim_call(again) is None
    before, result = events(caller, strict, session_id, "agent.mcp_tool_result")
    assert "cached" not in before
    assert result["cached"]["tool_use_id"] == first.id
    assert result["cached"]["at"] <= result["processed_at"]


@pytest.mark.parametrize("kind", ["mcp_connection_failed_error", "mcp_authentication_failed_error"])
def test_a_server_that_cannot_be_reached_is_named(
    caller: Caller, stage: Stage, strict: Anthropic, session_id: str, kind: str
) -> None:
    turn = stage.claim(session_id)
    assert turn
    stage.locked(
        session_id,
        lambda locked: fail_turn(locked, turn, TurnFailure(kind, "No.", retryable=False, server="bills")),
    )
    [event] = events(caller, strict, session_id, "session.error")
    assert event["error"] == {
        "type": kind,
        "mcp_server_name": "bills",
        "message": "No.",
        "retry_status": {"type": "terminal"},
    }


def test_an_attempt_of_unknown_outcome_is_shown(caller: Caller, stage: Stage, refund: ToolCall) -> None:
    held = running(caller, stage, refund)
    stage.worked(held, lambda locked: lose_call(locked, held.as_held(locked.db)))
    approval = approval_of(caller, refund)
    assert approval["kind"] == "unknown_outcome"
    assert (approval["attempt"]["number"], approval["attempt"]["worker"], approval["attempt"]["output"]) == (1, "worker", "")
    assert approval["attempt"]["started_at"] < approval["created_at"]


def test_a_tool_s_question_is_an_approval_that_says_what_is_asked(caller: Caller, stage: Stage, refund: ToolCall) -> None:
    approval = asking(caller, stage, refund, TWO)
    assert (approval["kind"], approval["status"], approval["questions"]) == ("question", "pending", TWO)
    [listed] = good(caller.get("/v1/approvals", params={"kind": "question"}))["data"]
    assert listed == approval
    [waiting] = good(caller.get(f"/v1/sessions/{refund.session_id}"))["waiting_on"]
    assert (waiting["approval_id"], waiting["kind"]) == (approval["id"], "question")
    requested = caller.events(refund.session_id, include="approvals", types="approval.requested")
    assert [event["kind"] for event in requested] == ["tool_call", "question"]
    preview = caller.post(f"/v1/approvals/{approval['id']}/preview", json={"scope": "session"})
    bad(preview, 400, "scope: ", "the kind tool_call")


@pytest.mark.parametrize("door", [decide, by_event])
def test_answers_reach_the_tool_and_no_event(caller: Caller, stage: Stage, strict: Anthropic, refund: ToolCall, door: Any) -> None:
    asking(caller, stage, refund, TWO)
    answers = {"reason": {"action": "accept", "content": WHY}, "sign in": {"action": "decline"}}
    approval = door(caller, refund, result="allow", answers=answers)
    assert (approval["status"], approval["decision"]) == ("answered", {"result": "allow", "answers_sha256": digest(answers)})
    assert stage.get(CallInput, refund.id).answers == answers
    confirmed = events(caller, strict, refund.session_id, "user.tool_confirmation")[-1]
    assert confirmed["answers_sha256"] == digest(answers)
    assert "Because" not in str(caller.events(refund.session_id, include="approvals"))
    assert door(caller, refund, result="allow", answers=answers) == approval


@pytest.mark.parametrize("door", [decide, by_event])
def test_the_only_question_needs_no_key(caller: Caller, stage: Stage, refund: ToolCall, door: Any) -> None:
    asking(caller, stage, refund, ONE)
    answers = {"reason": {"action": "accept", "content": WHY}}
    approval = door(caller, refund, result="allow", answer=WHY)
    assert approval["decision"] == {"result": "allow", "answers_sha256": digest(answers)}
    assert stage.get(CallInput, refund.id).answers == answers
    assert door(caller, refund, result="allow", answers=answers) == approval, "the same decision, in full"


def test_a_repeated_confirmation_belongs_to_the_approval_that_it_decided(caller: Caller, stage: Stage, refund: ToolCall) -> None:
    question = asking(caller, stage, refund, ONE)
    first = good(caller.tell(refund.session_id, confirmation(refund.id)))["data"]
    assert first[0]["approval_id"] != question["id"], "the confirmation decided the call, not its question"
    assert approval_of(caller, refund) == question
    no = confirmation(refund.id, "deny", deny_message="No.")
    assert good(caller.tell(refund.session_id, no)) == good(caller.tell(refund.session_id, no))
    assert approval_of(caller, refund)["status"] == "denied"


def test_of_several_questions_an_answer_must_say_which(caller: Caller, stage: Stage, refund: ToolCall) -> None:
    approval = asking(caller, stage, refund, TWO)
    path = f"/v1/approvals/{approval['id']}/decision"
    bad(caller.post(path, json={"result": "allow", "answer": WHY}), 400, "answer")
    bad(caller.tell(refund.session_id, confirmation(refund.id, answer=WHY)), 400, "answer")
    assert approval_of(caller, refund) == approval


def test_a_call_that_asks_nothing_takes_no_answers(caller: Caller, refund: ToolCall) -> None:
    path = f"/v1/approvals/{approval_of(caller, refund)['id']}/decision"
    for answers in ({"answers": {"reason": {"action": "cancel"}}}, {"answer": WHY}):
        bad(caller.post(path, json={"result": "allow"} | answers), 400, "answers: ")
        bad(caller.tell(refund.session_id, confirmation(refund.id, **answers)), 400, "answers: ")


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "answers that are not an object": ({"answers": []}, "answers: ", ""),
    "no answers": ({"answers": {}}, "answers: ", "1"),
    "an answer of no key": ({"answers": {"": {"action": "cancel"}}}, "answers.", "1"),
    "an answer that is text": ({"answers": {"reason": "yes"}}, "answers.reason: ", ""),
    "an answer without an action": ({"answers": {"reason": {"content": {}}}}, "answers.reason.action: ", "required"),
    "an unknown action": ({"answers": {"reason": {"action": "allow"}}}, "answers.reason.action: ", "'accept'"),
    "content that is not an object": (
        {"answers": {"reason": {"action": "accept", "content": "x"}}},
        "answers.reason.content: ",
        "",
    ),
    "content of a decline": (
        {"answers": {"reason": {"action": "decline", "content": {}}}},
        "answers.reason.content: ",
        "accept only",
    ),
    "an unknown field": ({"answers": {"reason": {"action": "cancel", "why": "x"}}}, "answers.reason.why: ", "leave it out"),
    "65 answers": ({"answers": {str(n): {"action": "cancel"} for n in range(65)}}, "answers: ", "64"),
    "answers too long": ({"answers": {"r": {"action": "accept", "content": {"a": "x" * 100_000}}}}, "answers: ", "100000 bytes"),
    "an answer too long": ({"answer": {"a": "ä" * 50_000}}, "answer: ", "100000 bytes"),
    "an answer that is not an object": ({"answer": "yes"}, "answer: ", ""),
    "both": ({"answers": {"reason": {"action": "cancel"}}, "answer": {}}, "answer: ", "one of them"),
}


def test_invalid_answers_are_refused_by_their_field(caller: Caller, refund: ToolCall, subtests: pytest.Subtests) -> None:
    before = approval_of(caller, refund)
    for case, (answers, field, words) in WRONG.items():
        with subtests.test(case):
            answer = caller.post(f"/v1/approvals/{before['id']}/decision", json={"result": "allow"} | answers)
            assert bad(answer, 400, words)["message"].startswith(field), answer.text
            answer = caller.tell(refund.session_id, confirmation(refund.id, **answers))
            assert bad(answer, 400, words)["message"].startswith(f"events.0.{field}"), answer.text
            assert approval_of(caller, refund) == before


def test_answers_go_with_allow_only(caller: Caller, stage: Stage, refund: ToolCall) -> None:
    approval = asking(caller, stage, refund, ONE)
    path = f"/v1/approvals/{approval['id']}/decision"
    for answers in ({"answers": {"reason": {"action": "cancel"}}}, {"answer": WHY}):
        bad(caller.post(path, json={"result": "deny"} | answers), 400, "answers: ", "allow only")
        bad(caller.tell(refund.session_id, confirmation(refund.id, "deny", **answers)), 400, "answers: ", "allow only")
    assert decide(caller, refund, result="deny", deny_message="No.")["status"] == "denied"
