"""The normal form: clients send an agent in many forms, and the turn reads one form."""

from typing import Any

import pytest

from api.v1.agents.requests import AgentCreate
from models.policy.asking import Asking
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.policy.session_policies import SessionPolicies
from models.workspace.toolset import ToolListing

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLSET = {"type": "agent_toolset_20260401"}
ASK, ALLOW, DENY = ({"type": f"always_{effect}"} for effect in ("ask", "allow", "deny"))
NOTHING = {"policy": None, "approval": None}


def body(*tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the normal form of an agent with these tools."""
    return AgentCreate.model_validate({"name": "A", "model": "m", "tools": list(tools)} | more).normal()


def effective(*tools: dict[str, Any]) -> dict[str, EffectiveTool]:
    """Return the effective tools of an agent with these tools, by name."""
    return {tool.name: tool for tool in effective_tools(body(*tools))}


def effect(agent: dict[str, Any], tool: str, **arguments: Any) -> str:
    """Judge a call by the agent's policies. Returns the effect."""
    return SessionPolicies(agent, NOTHING, "ask").judge(tool, arguments).effect


def asking(agent: dict[str, Any], tool: str) -> Asking:
    """Return the settings of an approval of a call."""
    return SessionPolicies(agent, NOTHING, "ask").asking(tool, {}, {"input_schema": {"type": "object"}})


def test_a_plain_toolset_is_six_tools_without_a_policy_of_their_own() -> None:
    tools = effective(TOOLSET)
    assert list(tools) == ["bash", "edit", "read", "write", "glob", "grep"]
    assert {(tool.kind, tool.policy, str(tool.approval)) for tool in tools.values()} == {("builtin", None, "{}")}


def test_defaults_hold_where_a_tool_says_nothing() -> None:
    configs = [
        {"name": "bash", "enabled": True, "permission_policy": ASK, "approval": {"timeout_seconds": 2}},
        {"name": "read", "enabled": True},
        {"name": "web_search"},
    ]
    agent = body(TOOLSET | {"default_config": {"enabled": False, "permission_policy": ALLOW}, "configs": configs})
    assert {tool.name: tool.policy for tool in effective_tools(agent)} == {"bash": ASK, "read": ALLOW}
    assert (effect(agent, "bash"), effect(agent, "read"), effect(agent, "write")) == ("ask", "allow", "deny")
    assert asking(agent, "bash").seconds == 2


def test_the_agent_s_policy_holds_where_neither_tool_nor_toolset_has_one() -> None:
    agent = body(TOOLSET | {"configs": [{"name": "bash", "permission_policy": ASK}]}, permission_policy=ALLOW)
    assert (effect(agent, "bash"), effect(agent, "read")) == ("ask", "allow")
    agent = body(TOOLSET | {"default_config": {"permission_policy": DENY}}, permission_policy=ALLOW)
    assert effect(agent, "read") == "deny"


def test_rules_reach_the_turn_from_tool_and_agent() -> None:
    rules = [{"effect": "allow", "match": "bash(git status *)"}]
    deny = [{"effect": "deny", "match": "bash(git push *)", "reason": "Main is protected."}]
    bash = {"name": "bash", "permission_policy": {"type": "rules", "rules": rules, "default": "ask"}}
    agent = body(TOOLSET | {"configs": [bash]}, permission_policy={"type": "rules", "rules": deny, "default": "ask"})
    assert effect(agent, "bash", command="git status -s") == "allow"
    assert effect(agent, "bash", command="ls") == "ask"
    assert effect(agent, "bash", command="git status; git push origin") == "deny"


def test_a_tool_s_settings_of_approvals_win_over_the_agent_s() -> None:
    bash = {"name": "bash", "approval": {"timeout_seconds": 60, "on_timeout": "allow"}}
    wide = {"timeout_seconds": 600, "on_timeout": "end_run", "remind_after_seconds": 30}
    agent = body(TOOLSET | {"configs": [bash]}, approval=wide)
    tools = {tool: asking(agent, tool) for tool in ("bash", "read")}
    assert {tool: (a.seconds, a.on_timeout, a.remind_after_seconds) for tool, a in tools.items()} == {
        "bash": (60, "allow", 30),
        "read": (600, "end_run", 30),
    }


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, "allow"),
        (ALLOW, "allow"),
        (ASK, "ask"),
        (DENY, "deny"),
        ({"type": "auto", "rules": [], "default": "deny"}, "deny"),
        ({"type": "rules", "default": "ask"}, "ask"),
    ],
)
def test_a_client_tool_is_allowed_unless_it_says_otherwise(policy: dict[str, Any] | None, expected: str) -> None:
    custom = {"type": "custom", "name": "t", "description": "d", "input_schema": SCHEMA}
    agent = body(custom | ({"permission_policy": policy} if policy else {}))
    [tool] = effective_tools(agent)
    assert (tool.kind, tool.description, tool.input_schema) == ("custom", "d", SCHEMA)
    assert effect(agent, "t", n=1) == expected


@pytest.mark.parametrize("policy", [{"type": "auto"}, {"type": "later"}, {"type": "rules", "rules": [{}], "default": "allow"}])
def test_an_invalid_stored_policy_denies(policy: dict[str, Any]) -> None:
    agent = body({"type": "custom", "name": "t", "description": "d", "input_schema": SCHEMA, "permission_policy": ALLOW})
    agent["tools"][0]["permission_policy"] = policy
    assert effect(agent, "t", n=1) == "deny"


def test_a_server_s_tools_have_the_defaults_of_their_toolset_unless_they_are_named() -> None:
    configs = [{"name": "push", "permission_policy": DENY}, {"name": "close", "enabled": False}, {"name": "gone"}]
    toolset = {"type": "mcp_toolset", "mcp_server_name": "git", "configs": configs}
    agent = body(toolset, mcp_servers=[{"type": "url", "name": "git", "url": "https://example.org"}])
    entries = tuple({"name": name, "description": name, "input_schema": SCHEMA} for name in ("push", "close", "look"))
    tools = effective_tools(agent, {"git": ToolListing("https://example.org", "digest", entries)})
    assert [(tool.name, tool.kind, tool.server) for tool in tools] == [
        ("mcp__git__push", "mcp", "git"),
        ("mcp__git__look", "mcp", "git"),
    ]
    assert tools[0].policy == {"type": "auto", "rules": [], "default": "deny"}
    assert tools[1].policy is None, "so the policies of agent and workspace decide"
