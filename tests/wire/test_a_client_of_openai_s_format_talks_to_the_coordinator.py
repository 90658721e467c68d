"""A client of OpenAI's format reads the text of the coordinator alone, and decides what sub-agents ask, named by their path."""

import json
from typing import Any

from crashes.processes import wait_for
from rows.crew import Crew, create_agent, roster, send
from rows.stage import call, say
from wire.talking import Talk, content, tool, user

from models.session.tool_call.row import ToolCall


def begin(talk: Talk) -> None:
    """Have the client talk to a coordinator with a sub-agent."""
    reader = create_agent(talk.stage, "Reader")
    talk.agent_id = create_agent(talk.stage, "Lead", multiagent=roster(reader))


def delegated(talk: Talk) -> Crew:
    """The coordinator gives a task, and rests. The sub-agent says something, and asks."""
    talk.reply(say("I delegate."), send("Reader", "Find the price."))
    crew = Crew(talk.stage, talk.session_id)
    crew.replies(say("Nobody reads this."), call(command="grep pump"))
    crew.lead_replies(say("I wait."))
    return crew


def test_a_call_of_a_sub_agent_is_asked_with_its_path_and_decided(talk: Talk) -> None:
    begin(talk)
    pending = talk.ask(user("Go."), metadata={"approvals": "tools"}, stream=True)
    crew = delegated(talk)
    chunks = pending.result()
    assert content(chunks) == "I delegate.\n\nI wait."
    [ask] = [each for chunk in chunks if chunk.choices for each in chunk.choices[0].delta.tool_calls or ()]
    question = json.loads(ask.function.arguments)
    assert (question["agent"], question["message"]) == ("Lead › Reader", "Run shell command: grep pump")
    [asked] = crew.asked()
    more: Any = {"metadata": {"approvals": "tools", "session_id": talk.session_id}}
    pending = talk.ask(tool(ask.id, '{"decision": "approve"}'), **more)
    wait_until_queued(talk, asked)
    talk.stage.run_call(asked, "12")
    crew.replies(say("It costs 12."))
    crew.lead_replies(say("The price is 12."))
    assert pending.result().choices[0].message.content == "The price is 12."
    [first, *_, last] = talk.sdk.get(f"/sessions/{talk.session_id}/messages", cast_to=dict)["data"]
    assert (first["content"], last["content"]) == ("Go.", "The price is 12.")


def test_a_plain_client_is_told_in_a_sentence_who_asks(talk: Talk) -> None:
    begin(talk)
    pending = talk.ask(user("Go."))
    crew = delegated(talk)
    [approval] = talk.stage.approvals(crew.session_id)
    message = pending.result().choices[0].message.content
    sentence = f"Waiting for approval: Lead › Reader: Run shell command: grep pump ({approval.id})"
    assert message == f"I delegate.\n\nI wait.\n\n{sentence}"


def wait_until_queued(talk: Talk, tool_call: ToolCall) -> None:
    """Wait until the decision has released the call."""
    wait_for("the decision", lambda: talk.stage.get(ToolCall, tool_call.id).status == "queued")
