"""The normal form: what clients send in many ways, the turn reads in one."""

from typing import Any

import pytest

from api.requests.tools import Custom, Toolset
from models.agent import EffectiveTool, effect, effective_tools

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def tools(*said: dict[str, Any]) -> dict[str, EffectiveTool]:
    """The effective tools of an agent with these."""
    normal = [(Custom if t["type"] == "custom" else Toolset).model_validate(t).normal() for t in said]
    return {tool.name: tool for tool in effective_tools({"tools": normal})}


def test_a_plain_toolset_is_six_tools_that_ask() -> None:
    found = tools({"type": "agent_toolset_20260401"})
    assert list(found) == ["bash", "edit", "read", "write", "glob", "grep"]
    assert {(t.kind, t.policy, t.timeout_seconds, t.prompt) for t in found.values()} == {("builtin", "ask", None, None)}


def test_defaults_hold_where_a_tool_says_nothing() -> None:
    found = tools(
        {
            "type": "agent_toolset_20260401",
            "default_config": {"enabled": False, "permission_policy": {"type": "always_allow"}},
            "configs": [
                {"name": "bash", "enabled": True, "permission_policy": {"type": "always_ask"}, "approval": {"timeout_seconds": 2}},
                {"name": "read", "enabled": True},
                {"name": "web_search"},
            ],
        }
    )
    assert {name: tool.policy for name, tool in found.items()} == {"bash": "ask", "read": "allow"}
    assert found["bash"].timeout_seconds == 2


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, "allow"),
        ({"type": "always_allow"}, "allow"),
        ({"type": "always_ask"}, "ask"),
        ({"type": "always_deny"}, "deny"),
        ({"type": "auto", "rules": [], "default": "deny"}, "deny"),
        ({"type": "rules", "default": "ask"}, "ask"),
    ],
)
def test_a_client_tool_is_allowed_unless_it_says_otherwise(policy: dict[str, Any] | None, expected: str) -> None:
    said: dict[str, Any] = {"type": "custom", "name": "t", "description": "d", "input_schema": SCHEMA}
    found = tools(said | ({"permission_policy": policy} if policy else {}))["t"]
    assert (found.kind, found.policy, found.description, found.input_schema) == ("custom", expected, "d", SCHEMA)


@pytest.mark.parametrize("policy", [{"type": "auto"}, {"type": "later"}, {"type": "rules", "rules": [{}], "default": "allow"}])
def test_a_stored_policy_that_is_not_understood_denies(policy: dict[str, Any]) -> None:
    assert effect(policy, "allow") == "deny"
