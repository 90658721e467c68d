"""`GET /v1/sessions/{id}/messages` returns prompts, replies with their calls, and a message for the result of each ended call."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from doors.waiting import decide, secretive
from rows.stage import Stage, call, say


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client with every scope."""
    with Caller(api, key(stage)) as client:
        yield client


def read(caller: Caller, session_id: str, **query: Any) -> dict[str, Any]:
    """Return one page of messages."""
    return good(caller.get(f"/v1/sessions/{session_id}/messages", params={"format": "openai"} | query))


def test_calls_and_results_are_paired_with_edits_and_denials(caller: Caller, stage: Stage) -> None:
    session_id = caller.session()["id"]
    caller.say(session_id, "Clean up.")
    edited, denied = stage.reply(session_id, say("Two commands."), call(command="rm -r a"), call(command="rm -r b"))
    stage.confirm(session_id, edited.id, updated_input={"command": "rm a"})
    stage.confirm(session_id, denied.id, "deny", deny_message="Keep b.")
    stage.run_call(edited, "removed")
    stage.reply(session_id, say("Done."))
    user, calls, first, second, last = read(caller, session_id)["data"]
    assert user == {"role": "user", "content": "Clean up."}
    assert (calls["role"], calls["content"]) == ("assistant", "Two commands.")
    assert [each["id"] for each in calls["tool_calls"]] == [edited.id, denied.id]
    assert json.loads(calls["tool_calls"][0]["function"]["arguments"]) == {"command": "rm -r a"}
    assert (first["role"], first["tool_call_id"]) == ("tool", edited.id)
    assert '{"command":"rm a"}' in first["content"]
    assert first["content"].endswith("removed")
    assert second["tool_call_id"] == denied.id
    assert "Keep b." in second["content"]
    assert last == {"role": "assistant", "content": "Done."}


def test_a_page_has_whole_turns_and_the_last_page_the_waiting_message(caller: Caller, stage: Stage) -> None:
    session_id = caller.session()["id"]
    for number in range(3):
        caller.say(session_id, f"{number}")
        [tool_call] = stage.reply(session_id, call())
        stage.confirm(session_id, tool_call.id)
        stage.run_call(tool_call)
        stage.reply(session_id, say(f"Done {number}."))
    caller.say(session_id, "One more.")
    pages, page = [], read(caller, session_id, limit=2)
    while page["next_page"]:
        pages.append(page["data"])
        page = read(caller, session_id, limit=2, page=page["next_page"])
    pages.append(page["data"])
    for each in pages:
        called = [tool_call["id"] for message in each for tool_call in message.get("tool_calls", ())]
        assert called == [message["tool_call_id"] for message in each if message["role"] == "tool"]
    assert [message for each in pages for message in each] == read(caller, session_id, limit=100)["data"]
    assert pages[-1][-1] == {"role": "user", "content": "One more."}


def test_secrets_stay_masked_and_a_client_s_call_that_asks_is_not_shown(caller: Caller, api: str, stage: Stage) -> None:
    tool_call = secretive(caller, stage)
    assert [message["role"] for message in read(caller, tool_call.session_id)["data"]] == ["user"]
    decide(caller, tool_call, result="allow")
    with Caller(api, key(stage, "read")) as reader:
        shown = read(reader, tool_call.session_id)["data"]
        assert "4711" not in str(shown)
        assert shown[1]["tool_calls"][0]["id"] == tool_call.id
    assert "4711" in str(read(caller, tool_call.session_id)["data"])


def test_another_format_is_refused(caller: Caller) -> None:
    session_id = caller.session()["id"]
    bad(caller.get(f"/v1/sessions/{session_id}/messages", params={"format": "xml"}), 400, "format")
    bad(caller.get("/v1/sessions/sesn_none/messages"), 404)
