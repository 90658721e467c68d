"""`assent approvals` and `assent chat` say which agent of a session asks, by its path, and for whose calls a grant would be."""

import pytest
from doors.served import Caller, good
from local.conftest import Assent
from local.terminal import terminal
from rows.crew import Crew, send
from rows.stage import Stage, call, say

from models.session.tool_call.row import ToolCall


@pytest.fixture
def crew(caller: Caller, stage: Stage) -> Crew:
    """A coordinator that rests, while a sub-agent waits for a person."""
    crew = Crew.begin(stage)
    crew.lead_replies(say("I delegate."), send("Reader", "Find the price."))
    crew.lead_replies(say("I wait."))
    crew.replies(call(command="grep pump prices.csv"))
    return crew


def test_an_approval_is_shown_with_its_path(assent: Assent, crew: Crew) -> None:
    shown = assent("approvals", typed="q\n")
    assert "  agent     Lead › Reader\n" in shown
    assert "Lead › Reader: Run shell command: grep pump prices.csv" in assent("approvals", "list")


def test_a_session_s_grant_may_be_for_all_agents(assent: Assent, caller: Caller, crew: Crew) -> None:
    with terminal("approvals", columns=120) as screen:
        for words, keys in (("q quit", "2\n"), ("3  calls that match", "1\n")):
            screen.wait_for(words)
            screen.wait_for("Your choice: ")
            screen.type(keys)
        screen.wait_for("1  calls of the agent Reader, version 1, in this session")
        screen.wait_for("Your choice: ")
        screen.type("2\n")
        screen.wait_for("It is for calls of every agent in this session, with all sub-agents.")
        screen.type("y\n")
        screen.wait_for("This gives a grant, ")
    [grant] = good(caller.get("/v1/grants"))["data"]
    assert grant["include_sub_agents"]
    assert f"session {crew.session_id}: calls of every agent in this session, with all sub-agents" in assent("grants", "list")


def test_a_grant_for_all_agents_is_an_option_of_a_program(assent: Assent, caller: Caller, crew: Crew) -> None:
    [approval] = good(caller.get("/v1/approvals"))["data"]
    assent("approvals", "decide", approval["id"], "--allow", "--scope", "session", "--include-sub-agents")
    [grant] = good(caller.get("/v1/grants"))["data"]
    assert grant["include_sub_agents"]


def test_a_chat_shows_what_agents_send_each_other_and_decides_what_they_ask(stage: Stage, caller: Caller, crew: Crew) -> None:
    [tool_call] = crew.asked()
    with terminal("chat", "--session", crew.session_id, columns=120) as screen:
        assert "to Reader: Find the price.\n" in screen.wait_for("agent     Lead › Reader")
        screen.wait_for("Your choice: ")
        screen.type("1\n")
        screen.wait_for("Decided.")
        assert stage.get(ToolCall, tool_call.id).status == "queued"
        stage.run_call(tool_call, "pump;12")
        crew.replies(say("It costs 12."))
        screen.wait_for("Reader: It costs 12.")
        crew.lead_replies(say("The price is 12."))
        screen.wait_for("agent> The price is 12.")
