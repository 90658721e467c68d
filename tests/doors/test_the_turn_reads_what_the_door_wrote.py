"""The normal form: what clients send in many ways, the turn reads in one."""

from typing import Any

import pytest

from api.requests.agents import AgentCreate
from models.policy.asking import Asking
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.policy.session_policies import SessionPolicies
from models.workspace.toolset import Listed

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLSET = {"type": "agent_toolset_20260401"}
ASK, ALLOW, DENY = ({"type": f"always_{effect}"} for effect in ("ask", "allow", "deny"))
NOTHING = {"policy": None, "approval": None}


def body(*tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The body of an agent with these tools, as the door makes it."""
    return AgentCreate.model_validate({"name": "A", "model": "m", "tools": list(tools)} | more).normal()


def effective(*tools: dict[str, Any]) -> dict[str, EffectiveTool]:
    """The effective tools of an agent with these."""
    return {tool.name: tool for tool in effective_tools(body(*tools))}


def effect(said: dict[str, Any], tool: str, **given: Any) -> str:
    """What the agent's policies say to a call."""
    return SessionPolicies(said, NOTHING, "ask").judge(tool, given).effect


def asking(said: dict[str, Any], tool: str) -> Asking:
    """How people are asked about a call."""
    return SessionPolicies(said, NOTHING, "ask").asking(tool, {}, {"input_schema": {"type": "object"}})


def test_a_plain_toolset_is_six_tools_without_a_policy_of_their_own() -> None:
    found = effective(TOOLSET)
    assert list(found) == ["bash", "edit", "read", "write", "glob", "grep"]
    assert {(tool.kind, tool.policy, str(tool.approval)) for tool in found.values()} == {("builtin", None, "{}")}


def test_defaults_hold_where_a_tool_says_nothing() -> None:
    configs = [
        {"name": "bash", "enabled": True, "permission_policy": ASK, "approval": {"timeout_seconds": 2}},
        {"name": "read", "enabled": True},
        {"name": "web_search"},
    ]
    said = body(TOOLSET | {"default_config": {"enabled": False, "permission_policy": ALLOW}, "configs": configs})
    assert {tool.name: tool.policy for tool in effective_tools(said)} == {"bash": ASK, "read": ALLOW}
    assert (effect(said, "bash"), effect(said, "read"), effect(said, "write")) == ("ask", "allow", "deny")
    assert asking(said, "bash").seconds == 2


def test_the_agent_s_policy_holds_where_neither_tool_nor_toolset_has_one() -> None:
    said = body(TOOLSET | {"configs": [{"name": "bash", "permission_policy": ASK}]}, permission_policy=ALLOW)
    assert (effect(said, "bash"), effect(said, "read")) == ("ask", "allow")
    said = body(TOOLSET | {"default_config": {"permission_policy": DENY}}, permission_policy=ALLOW)
    assert effect(said, "read") == "deny"


def test_rules_reach_the_turn_from_tool_and_agent() -> None:
    rules = [{"effect": "allow", "match": "bash(git status *)"}]
    deny = [{"effect": "deny", "match": "bash(git push *)", "reason": "Main is protected."}]
    bash = {"name": "bash", "permission_policy": {"type": "rules", "rules": rules, "default": "ask"}}
    said = body(TOOLSET | {"configs": [bash]}, permission_policy={"type": "rules", "rules": deny, "default": "ask"})
    assert effect(said, "bash", command="git status -s") == "allow"
    assert effect(said, "bash", command="ls") == "ask"
    assert effect(said, "bash", command="git status; git push origin") == "deny"


def test_a_tool_s_way_of_asking_comes_before_the_agent_s() -> None:
    bash = {"name": "bash", "approval": {"timeout_seconds": 60, "on_timeout": "allow"}}
    wide = {"timeout_seconds": 600, "on_timeout": "end_run", "remind_after_seconds": 30}
    said = body(TOOLSET | {"configs": [bash]}, approval=wide)
    found = {tool: asking(said, tool) for tool in ("bash", "read")}
    assert {tool: (a.seconds, a.on_timeout, a.remind_after_seconds) for tool, a in found.items()} == {
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
    said = {"type": "custom", "name": "t", "description": "d", "input_schema": SCHEMA}
    made = body(said | ({"permission_policy": policy} if policy else {}))
    [found] = effective_tools(made)
    assert (found.kind, found.description, found.input_schema) == ("custom", "d", SCHEMA)
    assert effect(made, "t", n=1) == expected


@pytest.mark.parametrize("policy", [{"type": "auto"}, {"type": "later"}, {"type": "rules", "rules": [{}], "default": "allow"}])
def test_a_stored_policy_that_is_not_understood_denies(policy: dict[str, Any]) -> None:
    made = body({"type": "custom", "name": "t", "description": "d", "input_schema": SCHEMA, "permission_policy": ALLOW})
    made["tools"][0]["permission_policy"] = policy
    assert effect(made, "t", n=1) == "deny"


def test_of_a_server_s_tools_those_that_are_named_are_otherwise_than_the_rest() -> None:
    configs = [{"name": "push", "permission_policy": DENY}, {"name": "close", "enabled": False}, {"name": "gone"}]
    toolset = {"type": "mcp_toolset", "mcp_server_name": "git", "configs": configs}
    said = body(toolset, mcp_servers=[{"type": "url", "name": "git", "url": "https://example.org"}])
    entries = tuple({"name": name, "description": name, "input_schema": SCHEMA} for name in ("push", "close", "look"))
    found = effective_tools(said, {"git": Listed("https://example.org", "digest", entries)})
    assert [(tool.name, tool.kind, tool.server) for tool in found] == [
        ("mcp__git__push", "mcp", "git"),
        ("mcp__git__look", "mcp", "git"),
    ]
    assert found[0].policy == {"type": "auto", "rules": [], "default": "deny"}
    assert found[1].policy is None, "it is nobody's, so those of agent and workspace are asked"
