"""A client that knows nothing but a session's id shows what waits, and goes on, with the strict SDK."""

from typing import Any

from anthropic import Anthropic
from doors.served import MODEL
from rows.stage import Stage, call, say

from models.pure.json.canonical import digest

LOOK_UP: Any = {
    "type": "custom",
    "name": "look_up",
    "description": "Look something up.",
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}


def screen(sdk: Anthropic, session_id: str) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Return what a client shows that keeps nothing between two requests: the state, what waits, and the texts so far."""
    session = sdk.beta.sessions.retrieve(session_id).to_dict()
    events = sdk.beta.sessions.events.list(session_id)
    texts = [block["text"] for event in events for block in event.to_dict().get("content") or () if "text" in block]  # type: ignore[index]
    return session["state"], session["waiting_on"], texts  # type: ignore[typeddict-item]


def go_on(sdk: Anthropic, session_id: str) -> None:
    """Do what the session waits for: allow what people were shown, and post the result of the client's call."""
    _, [waiting], _ = screen(sdk, session_id)
    if waiting["waits_for"] == "person":
        answer: Any = {"type": "user.tool_confirmation", "tool_use_id": waiting["tool_use_id"], "result": "allow"}
        answer["expected_input_sha256"] = waiting["input_sha256"]
    else:
        answer = {"type": "user.custom_tool_result", "custom_tool_use_id": waiting["tool_use_id"]}
        answer["content"] = [{"type": "text", "text": f"{waiting['input']['n']} is found"}]
    sdk.beta.sessions.events.send(session_id, events=[answer])


def test_it_sees_the_same_and_goes_on_at_each_point(sdk: Anthropic, stage: Stage) -> None:
    agent = sdk.beta.agents.create(name="Agent", model=MODEL, tools=[{"type": "agent_toolset_20260401"}, LOOK_UP])
    environment = sdk.beta.environments.list().data[0]
    session_id = sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id).id
    sdk.beta.sessions.events.send(session_id, events=[{"type": "user.message", "content": [{"type": "text", "text": "Look."}]}])
    [ours] = stage.reply(session_id, say("First a command."), call(command="ls"))

    state, [waiting], texts = screen(sdk, session_id)
    assert (state, texts) == ("waiting_approval", ["Look.", "First a command."])
    assert (waiting["prompt"], waiting["input"], waiting["input_sha256"]) == (
        "Run shell command: ls",
        {"command": "ls"},
        digest({"command": "ls"}),
    )
    go_on(sdk, session_id)
    stage.run_call(ours, "a.txt")
    stage.reply(session_id, say("Then a look."), call("look_up", n=7))

    state, [waiting], texts = screen(sdk, session_id)
    assert (state, texts[2:]) == ("active", ["a.txt", "Then a look."])
    assert (waiting["waits_for"], waiting["tool"], waiting["input"]) == ("client", "look_up", {"n": 7})
    assert [session.id for session in sdk.beta.sessions.list(extra_query={"waiting": "client"})] == [session_id]
    go_on(sdk, session_id)
    stage.reply(session_id, say("Done."))
    assert screen(sdk, session_id) == (
        "completed",
        [],
        ["Look.", "First a command.", "a.txt", "Then a look.", "7 is found", "Done."],
    )
