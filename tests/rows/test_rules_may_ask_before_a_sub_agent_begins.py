"""A rule that names `send_to_agent` holds for it as for any tool: people decide, and only what they allow begins."""

from typing import Any

import pytest
from rows.crew import Crew, create_agent, list_agents, roster, send
from rows.stage import Stage, call, rules, say

from models.session.tool_call.row import ToolCall


def crew(stage: Stage, policy: dict[str, Any] | None, **more: Any) -> Crew:
    """A coordinator under this policy, with a message to read."""
    reader = create_agent(stage, "Reader")
    agent = create_agent(stage, "Lead", multiagent=roster(reader), permission_policy=policy)
    crew = Crew(stage, stage.session(of_agent=agent, **more))
    stage.message(crew.session_id)
    return crew


@pytest.fixture
def waiting(stage: Stage) -> tuple[Crew, ToolCall]:
    """A call that would begin a sub-agent, and waits for a person."""
    asking = crew(stage, rules(("ask", "send_to_agent"), default="allow"))
    return asking, asking.lead_replies(send("Reader", "Read it."))[0]


def test_no_default_asks_about_it(stage: Stage) -> None:
    stage.change_policies(policy=rules(("allow", "read"), default="deny"))
    for policy in (None, {"type": "always_ask"}, rules(("allow", "read"), default="deny")):
        calls = crew(stage, policy).lead_replies(send("Reader"), list_agents())
        assert [stage.get(ToolCall, each.id).status for each in calls] == ["done", "done"]


def test_nothing_begins_before_a_person_allows_it(stage: Stage, waiting: tuple[Crew, ToolCall]) -> None:
    asking, asked = waiting
    assert (asked.status, asking.threads, asking.lead.status) == ("asked", [], "waiting")
    stage.confirm(asking.session_id, asked.id)
    assert stage.get(ToolCall, asked.id).status == "done"
    assert asking.texts(asking.begin_turn()) == ["Read it."]
    assert asking.lead.status == "running"
    stage.check(asking.session_id)


def test_what_is_denied_never_begins(stage: Stage, waiting: tuple[Crew, ToolCall]) -> None:
    asking, asked = waiting
    stage.confirm(asking.session_id, asked.id, "deny")
    assert asking.threads == []
    assert "denied this tool call" in stage.result(asked)
    stage.check(asking.session_id)


def test_a_person_may_change_the_task(stage: Stage, waiting: tuple[Crew, ToolCall]) -> None:
    asking, asked = waiting
    stage.confirm(asking.session_id, asked.id, updated_input={"agent": "Reader", "message": "Read this alone."})
    assert asking.texts(asking.begin_turn()) == ["Read this alone."]
    stage.check(asking.session_id)


def test_a_person_may_answer_in_its_place(stage: Stage, waiting: tuple[Crew, ToolCall]) -> None:
    asking, asked = waiting
    stage.confirm(asking.session_id, asked.id, respond=(say("It says 42."),))
    assert asking.threads == []
    assert stage.get(ToolCall, asked.id).status == "answered"


def test_no_grant_beats_the_rule(stage: Stage, waiting: tuple[Crew, ToolCall]) -> None:
    asking, asked = waiting
    stage.confirm(asking.session_id, asked.id, scope="session")
    [again] = asking.lead_replies(send("Reader", "And this."))
    assert again.status == "asked"
    assert len(asking.threads) == 1


def test_a_rule_that_denies_from_now_on_stops_a_call_that_waits(stage: Stage, waiting: tuple[Crew, ToolCall]) -> None:
    asking, asked = waiting
    stage.change_policies(policy=rules(("deny", "send_to_agent"), default="allow"))
    with pytest.raises(Exception, match="not permitted any more"):
        stage.confirm(asking.session_id, asked.id)
    assert asking.threads == []


def test_a_denied_tool_is_not_offered(stage: Stage) -> None:
    denying = crew(stage, rules(("deny", "send_to_agent"), default="allow"))
    offered = [tool["name"] for tool in stage.locked(denying.session_id, lambda locked: stage.tools(locked).for_model())]
    assert "send_to_agent" not in offered
    [denied] = denying.lead_replies(send("Reader"))
    assert stage.get(ToolCall, denied.id).status == "denied"


def test_a_rule_may_name_what_a_task_says(stage: Stage) -> None:
    match = {"tool": "send_to_agent", "input": [{"path": "/message", "glob": "*production*"}]}
    asking = crew(stage, {"type": "rules", "rules": [{"effect": "ask", "match": match}], "default": "allow"})
    calls = asking.lead_replies(send("Reader", "Look at the tests."), send("Reader", "Look at production."))
    assert [stage.get(ToolCall, each.id).status for each in calls] == ["done", "asked"]
    assert len(asking.threads) == 1
    stage.check(asking.session_id)


def test_an_agent_without_sub_agents_has_no_such_tool(stage: Stage) -> None:
    session_id = stage.session()
    stage.message(session_id)
    [unknown] = stage.reply(session_id, call("send_to_agent", agent="Reader", message="Hi."))
    assert "There is no tool named" in stage.result(unknown)
