"""All fields of a decision, by event and by approval. An invalid field is named, and no event stores a secret."""

from typing import Any

import pytest
from anthropic import Anthropic
from doors.served import Caller, bad, confirmation, good, message
from doors.waiting import approval_of, asked, by_event, decide, secretive
from rows.stage import Stage, call

from models.pure.json.canonical import digest
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall

EDITED = {"command": "ls -la"}


@pytest.mark.parametrize("door", [decide, by_event])
def test_an_edited_input_is_what_runs(caller: Caller, stage: Stage, waiting: ToolCall, door: Any) -> None:
    approval = door(caller, waiting, result="allow", updated_input=EDITED)
    assert (approval["status"], approval["input"]) == ("allowed", {"command": "ls -l"})
    assert (approval["decided_input"], approval["decided_sha256"]) == (EDITED, digest(EDITED))
    assert approval["decision"] == {"result": "allow", "updated_input_sha256": digest(EDITED)}
    assert stage.get(CallInput, waiting.id).input == EDITED
    [event] = caller.events(waiting.session_id, types="user.tool_confirmation")
    assert event["updated_input_sha256"] == digest(EDITED)
    assert "ls -la" not in str(event), "the event has the hash alone"


@pytest.mark.parametrize("door", [decide, by_event])
@pytest.mark.parametrize("respond", ["3 files", [{"type": "text", "text": "3 files"}]])
def test_an_answer_in_the_tool_s_place_is_its_result(
    caller: Caller, stage: Stage, waiting: ToolCall, door: Any, respond: Any
) -> None:
    approval = door(caller, waiting, result="allow", respond=respond)
    assert approval["status"] == "answered"
    assert approval["decision"]["respond"] == [{"type": "text", "text": "3 files"}]
    [event] = caller.events(waiting.session_id, types="agent.tool_result")
    assert event["content"][-1] == {"type": "text", "text": "3 files"}
    assert stage.get(ToolCall, waiting.id).status == "answered"


@pytest.mark.parametrize("door", [decide, by_event])
def test_the_same_again_is_the_same_and_another_is_409(caller: Caller, waiting: ToolCall, door: Any) -> None:
    decision = {"result": "allow", "updated_input": EDITED}
    assert door(caller, waiting, **decision) == door(caller, waiting, **decision)
    path = f"/v1/approvals/{approval_of(caller, waiting)['id']}/decision"
    bad(caller.post(path, json=decision | {"updated_input": {"command": "ls -lart"}}), 409, "already allowed")
    bad(caller.post(path, json={"result": "allow"}), 409, "already allowed")


def test_the_stop_reason_names_the_person_who_ended_the_run_and_the_reason(caller: Caller, waiting: ToolCall) -> None:
    approval = decide(caller, waiting, result="deny", interrupt=True, deny_message="Not on a Friday.")
    reason = good(caller.get(f"/v1/sessions/{waiting.session_id}"))["stop_reason"]
    assert reason == {"type": "end_turn", "ended_by": approval["decided_by"], "message": "Not on a Friday."}
    assert caller.events(waiting.session_id)[-1]["stop_reason"] == reason


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"result": "allow", "deny_message": "no"}, "result"),
    ({"result": "allow", "interrupt": True}, "result"),
    ({"result": "deny", "updated_input": EDITED}, "updated_input"),
    ({"result": "deny", "respond": "3 files"}, "respond"),
    ({"result": "deny", "scope": "session"}, "scope"),
    ({"result": "allow", "respond": "3 files", "updated_input": EDITED}, "respond"),
    ({"result": "allow", "scope": "always", "updated_input": EDITED}, "scope"),
    ({"result": "allow", "match": "exact"}, "match"),
    ({"result": "allow", "scope": "once", "max_uses": 3}, "max_uses"),
    ({"result": "allow", "expires_in_seconds": 60}, "expires_in_seconds"),
    ({"result": "allow", "scope": "for ever"}, "scope"),
    ({"result": "allow", "scope": "session", "match": ""}, "match"),
    ({"result": "allow", "scope": "session", "match": "x" * 1001}, "match"),
    ({"result": "allow", "scope": "session", "expires_in_seconds": 0}, "expires_in_seconds"),
    ({"result": "allow", "scope": "session", "expires_in_seconds": 1e10}, "expires_in_seconds"),
    ({"result": "allow", "scope": "session", "max_uses": 0}, "max_uses"),
    ({"result": "allow", "scope": "session", "max_uses": 1.5}, "max_uses"),
    ({"result": "allow", "updated_input": "ls"}, "updated_input"),
    ({"result": "allow", "respond": " \n"}, "respond"),
    ({"result": "allow", "respond": []}, "respond"),
    ({"result": "allow", "respond": [{"type": "text"}]}, "respond.0.text"),
    ({"result": "allow", "scope": "session", "match": "bash(git *"}, "match"),
    ({"result": "allow", "scope": "session", "match": "read(src/**)"}, "match"),
    ({"result": "allow", "updated_input": {"command": "ls", "nosuch": 1}}, "updated_input"),
    ({"result": "allow", "updated_input": {"command": 5}}, "updated_input"),
]


def test_an_invalid_field_is_named_and_decides_nothing(caller: Caller, waiting: ToolCall, subtests: pytest.Subtests) -> None:
    approval = approval_of(caller, waiting)
    for decision, field in WRONG:
        with subtests.test(str(decision)[:100]):
            error = bad(caller.post(f"/v1/approvals/{approval['id']}/decision", json=decision), 400)
            assert error["message"].startswith(f"{field}: ")
            error = bad(caller.tell(waiting.session_id, confirmation(waiting.id, **decision)), 400)
            assert error["message"].startswith(f"events.0.{field}: ")
            bad(caller.tell(waiting.session_id, message(), confirmation(waiting.id, **decision)), 400, f"events.1.{field}: ")
            assert approval_of(caller, waiting) == approval


def test_an_edited_secret_is_stored_where_it_runs_and_nowhere_else(caller: Caller, stage: Stage) -> None:
    tool_call = secretive(caller, stage)
    edited = {"amount": 6, "pin": "0815"}
    good(caller.tell(tool_call.session_id, confirmation(tool_call.id, updated_input=edited)))
    assert stage.get(CallInput, tool_call.id).input == edited
    approval = approval_of(caller, tool_call)
    assert approval["decided_input"] == {"amount": 6, "pin": "«masked»"}
    assert approval["decided_sha256"] == digest(edited)
    confirmed = [event.body for event in stage.events(tool_call.session_id) if event.type != "agent.custom_tool_use"]
    assert "0815" not in str(confirmed) + str(approval)


def test_a_masked_value_left_as_it_was_shown_is_the_real_one(caller: Caller, stage: Stage) -> None:
    tool_call = secretive(caller, stage)
    shown = approval_of(caller, tool_call)["input"]
    decide(caller, tool_call, result="allow", updated_input=shown | {"amount": 7})
    assert stage.get(CallInput, tool_call.id).input == {"amount": 7, "pin": "4711"}


def test_the_sdk_sends_our_additional_fields(api: str, caller: Caller, stage: Stage, waiting: ToolCall) -> None:
    confirmed: Any = confirmation(waiting.id, scope="session", match="bash(ls *)", max_uses=2)
    with Anthropic(api_key=caller.headers["x-api-key"], base_url=api, max_retries=0) as sdk:
        [stored] = sdk.beta.sessions.events.send(waiting.session_id, events=[confirmed]).data or []
    assert stored.type == "user.tool_confirmation"
    assert (stored.model_extra or {})["scope"] == "session"
    assert (stored.model_extra or {})["match"] == "bash(ls *)"
    assert approval_of(caller, waiting)["grant"]["max_uses"] == 2


@pytest.mark.parametrize("last", [True, False])
def test_a_chat_word_decides_what_was_pending_at_the_event_that_was_seen(caller: Caller, stage: Stage, last: bool) -> None:
    [tool_call] = asked(caller, stage, call(), chat_approvals=True)
    shown = caller.events(tool_call.session_id)
    good(caller.tell(tool_call.session_id, message("yes") | {"seen": shown[-1 if last else 0]["id"]}))
    assert stage.get(ToolCall, tool_call.id).status == ("queued" if last else "asked")


def test_a_seen_event_of_another_session_is_named(caller: Caller, stage: Stage) -> None:
    [tool_call], [other] = (asked(caller, stage, call(), chat_approvals=True) for _ in range(2))
    seen = caller.events(other.session_id)[-1]["id"]
    bad(caller.tell(tool_call.session_id, message("yes") | {"seen": seen}), 400, "events.0.seen: ")
    assert stage.get(ToolCall, tool_call.id).status == "asked"
