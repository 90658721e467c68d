"""A coordinator may define an agent itself, for one thread. Its tools, policies and models are the coordinator's, or fewer."""

from typing import Any

import pytest
from rows.crew import Crew, create_agent, roster, send
from rows.stage import Stage, call, entry, rules, say

from models.database.transactions import transaction
from models.pure.json.canonical import canonical
from models.session.tool_call.row import ToolCall
from models.workspace import toolset
from models.workspace.agent import Agent

DEFINITION = {"name": "Counter", "description": "Counts.", "system": "Count."}
TOOLSET = "agent_toolset_20260401"
POLICY = rules(("deny", "bash(rm *)"), ("ask", "mcp__shop__refund"), default="allow")


@pytest.fixture
def crew(stage: Stage) -> Crew:
    """A coordinator with three tools of different kinds, which may define agents."""
    toolset.announce({"shop": [entry("refund"), entry("find")]})
    configs = [
        {"type": name, "name": name, "enabled": True, "permission_policy": POLICY, "policy_from": "tool", "approval": None}
        for name in ("bash", "read")
    ]
    default = {"enabled": True, "permission_policy": {"type": "always_ask"}, "policy_from": "toolset"}
    tools: list[dict[str, Any]] = [
        {"type": TOOLSET, "default_config": {"enabled": True, "permission_policy": POLICY}, "configs": configs},
        {"type": "custom", "name": "ask_crm", "description": "d", "input_schema": {"type": "object"}},
        {"type": "mcp_toolset", "mcp_server_name": "shop", "default_config": default, "configs": []},
    ]
    body: dict[str, Any] = {
        "tools": tools,
        "mcp_servers": [{"type": "url", "name": "shop", "url": "assent:shop"}],
        "permission_policy": POLICY,
        "model": {"id": "stand-in", "fallbacks": ["small", "other"]},
        "approval": {"timeout_seconds": 60},
    }
    agent = create_agent(stage, "Lead", multiagent=roster(inline=True), **body)
    crew = Crew(stage, stage.session(of_agent=agent))
    stage.message(crew.session_id)
    return crew


def begin(crew: Crew, **definition: Any) -> dict[str, Any]:
    """Begin an inline agent. Returns the agent of its thread."""
    [spawn] = crew.lead_replies(send(DEFINITION | definition))
    assert not crew.stage.get(ToolCall, spawn.id).is_error, crew.stage.result(spawn)
    agent: dict[str, Any] = crew.stage.locked(crew.session_id, lambda locked: locked.each[-1].agent)
    return agent


def names(crew: Crew) -> list[str]:
    """The names of the last thread's tools, as its model gets them."""
    return [
        tool["name"] for tool in crew.stage.locked(crew.session_id, lambda locked: crew.stage.tools(locked.each[-1]).for_model())
    ]


def test_it_has_all_tools_and_policies_of_its_coordinator_by_default(stage: Stage, crew: Crew) -> None:
    agent = begin(crew)
    own = stage.read_agent(crew.session_id)
    assert (agent["name"], agent["system"], agent["type"]) == ("Counter", "Count.", "inline")
    for field in ("permission_policy", "approval", "model", "mcp_servers"):
        assert agent[field] == own[field]
    assert names(crew) == ["bash", "read", "ask_crm", "mcp__shop__refund", "mcp__shop__find"]
    assert crew.thread().inline
    assert (crew.thread().name, crew.thread().agent_id) == ("Counter", own["id"])
    stage.check(crew.session_id)


def test_it_gets_only_the_tools_that_are_named(stage: Stage, crew: Crew) -> None:
    begin(crew, tools=["read", "mcp__shop__find"])
    assert names(crew) == ["read", "mcp__shop__find"]
    [read, refund] = crew.replies(call("read", file_path="a"), call("mcp__shop__refund", n=1))
    assert (read.permission, read.status) == ("allow", "queued")
    assert stage.get(ToolCall, refund.id).status == "refused"


def test_a_tool_keeps_its_policy(stage: Stage, crew: Crew) -> None:
    agent = begin(crew, tools=["bash", "mcp__shop__find"])
    find = {"name": "find", "enabled": True, "permission_policy": {"type": "always_ask"}, "policy_from": "toolset"}
    assert agent["tools"][-1]["configs"] == [find], "without the parent's policies, too"
    removed, listed, found = crew.replies(call(command="rm x"), call(command="ls"), call("mcp__shop__find", n=1))
    assert [each.permission for each in (removed, listed, found)] == ["deny", "allow", "ask"]
    stage.check(crew.session_id)


def test_without_tools_it_only_writes(stage: Stage, crew: Crew) -> None:
    begin(crew, tools=[])
    assert names(crew) == []


@pytest.mark.parametrize(
    ("model", "model_id", "fallbacks"), [("stand-in", "stand-in", ["small", "other"]), ("small", "small", ["other"])]
)
def test_its_model_is_one_of_its_coordinator_s(crew: Crew, model: str, model_id: str, fallbacks: list[str]) -> None:
    agent = begin(crew, model=model)
    assert (agent["model"]["id"], agent["model"]["fallbacks"]) == (model_id, fallbacks)


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ({"tools": ["write"]}, "agent.tools: 'write' is none of your tools: bash, read"),
        ({"tools": ["send_to_agent"]}, "agent.tools: 'send_to_agent' is none of your tools"),
        ({"model": "claude-opus-5-5"}, "agent.model: 'claude-opus-5-5' is none of your models: stand-in, small, other"),
        ({"permission_policy": {"type": "always_allow"}}, "does not fit the tool's schema"),
        ({"tools": [{"type": TOOLSET}]}, "does not fit the tool's schema"),
    ],
)
def test_a_model_gives_it_nothing_more(stage: Stage, crew: Crew, definition: dict[str, Any], why: str) -> None:
    [failed] = crew.lead_replies(send(DEFINITION | definition))
    assert why in stage.result(failed)
    assert crew.threads == []


def test_it_is_of_its_thread_alone_and_never_changes(stage: Stage, crew: Crew) -> None:
    first = begin(crew)
    with transaction(stage.workspace_id) as db:
        Agent.find(db, stage.read(crew.session_id).agent_id).update(db, stage.principal, {"system": "New."})
    second = begin(crew, system="Count twice.")
    assert [second["name"], second["system"]] == ["Counter", "Count twice."]
    again = stage.locked(crew.session_id, lambda locked: locked.each[1].agent)
    assert canonical(again) == canonical(first)


def test_it_reports_like_any_sub_agent(stage: Stage, crew: Crew) -> None:
    begin(crew)
    crew.replies(say("Three."))
    assert crew.texts(stage.begin(crew.session_id)) == ["Three."]
    stage.check(crew.session_id)


@pytest.mark.parametrize("name", ["Lead", " reader ", "  "])
def test_no_inline_agent_has_the_name_of_another_agent(stage: Stage, name: str) -> None:
    """People would take its approvals for those of the other one."""
    crew = Crew.begin(stage, inline=True)
    [failed] = crew.lead_replies(send(DEFINITION | {"name": name}))
    assert "agent.name" in stage.result(failed)
    assert crew.threads == []
