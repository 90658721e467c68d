"""A message that lists what waits is marked everywhere as no message of the agent."""

from doors.served import Caller, good
from rows.stage import Stage, call, say

from api.cli.showing import narrate
from api.desk.rendering.story import entry


def listing(caller: Caller, stage: Stage) -> tuple[str, dict[str, object]]:
    """A session whose conversation lists a call, and the event of the listing."""
    session_id = caller.session(chat_approvals=True)["id"]
    caller.say(session_id)
    stage.reply(session_id, say("I will."), call())
    [event] = [event for event in caller.events(session_id) if "assent" in event]
    return session_id, event


def test_the_event_names_the_approvals(caller: Caller, stage: Stage) -> None:
    session_id, event = listing(caller, stage)
    [approval] = stage.approvals(session_id)
    shown = {approval.id: approval.input_sha256}
    assert event["type"] == "agent.message"
    assert event["assent"] == {"kind": "waiting", "approval_ids": [approval.id], "shown_inputs": shown}


def test_the_messages_in_the_format_of_openai_do_not_have_it(caller: Caller, stage: Stage) -> None:
    session_id, _ = listing(caller, stage)
    messages = good(caller.get(f"/v1/sessions/{session_id}/messages"))["data"]
    assert [message["content"] for message in messages] == ["Do it.", "I will."]


def test_pages_and_the_terminal_name_another_speaker(caller: Caller, stage: Stage) -> None:
    _, event = listing(caller, stage)
    shown = entry(1, event)
    assert shown
    assert shown.who == "assent"
    assert next(narrate(event)).startswith("assent: 1 call waits")
