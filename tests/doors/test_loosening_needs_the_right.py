"""A key that runs sessions cannot loosen a policy: overrides need the scope `agents`, a deadline that allows needs `approvals`."""

from collections.abc import Callable
from typing import Any

import pytest
from doors.served import MODEL, Caller, bad, good

TOOLSET = {"type": "agent_toolset_20260401"}
ALLOW = {"type": "always_allow"}
ASK = {"type": "always_ask"}
LOOSE = TOOLSET | {"default_config": {"permission_policy": ALLOW}}
LATE = {"on_timeout": "allow"}
SERVER = {"type": "url", "name": "docs", "url": "https://docs.example/mcp"}
OVERRIDES: list[tuple[str, Any]] = [
    ("tools", [LOOSE]),
    ("tools", []),
    ("mcp_servers", [SERVER]),
    ("permission_policy", ALLOW),
    ("permission_policy", None),
    ("approval", {"timeout_seconds": 1}),
]
CUSTOM = {"type": "custom", "name": "pay", "description": "Pay.", "input_schema": {"type": "object"}}
LATE_TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("tools.0.configs.1.approval.on_timeout", TOOLSET | {"configs": [{"name": "read"}, {"name": "bash", "approval": LATE}]}),
    ("tools.0.approval.on_timeout", CUSTOM | {"approval": LATE}),
    (
        "tools.0.configs.0.approval.on_timeout",
        {"type": "mcp_toolset", "mcp_server_name": "docs", "configs": [{"name": "search", "approval": LATE}]},
    ),
]


@pytest.fixture
def strict_agent(caller: Caller) -> dict[str, Any]:
    """An agent that asks for every call."""
    return caller.agent(tools=[TOOLSET], permission_policy=ASK)


def create(caller: Caller, agent: dict[str, Any], **overrides: Any) -> Any:
    """Try to create a session with overrides. Returns the response."""
    reference = {"type": "agent_with_overrides", "id": agent["id"]} | overrides
    return caller.post("/v1/sessions", json={"agent": reference, "environment_id": caller.environment_id()})


@pytest.mark.parametrize(("field", "value"), OVERRIDES)
def test_overriding_a_policy_needs_the_scope_agents(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any], field: str, value: Any
) -> None:
    runner = with_scopes("read", "sessions")
    error = bad(create(runner, strict_agent, **{field: value}), 403, f"agent.{field}: ", "'agents'")
    assert error["type"] == "permission_error"
    assert good(runner.get("/v1/sessions"))["data"] == []
    good(create(with_scopes("read", "sessions", "agents"), strict_agent, **{field: value}))


@pytest.mark.parametrize(("field", "value"), [("tools", [LOOSE]), ("tools", []), ("mcp_servers", [SERVER])])
def test_changing_a_session_s_tools_needs_the_scope_agents(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any], field: str, value: Any
) -> None:
    runner = with_scopes("read", "sessions")
    session = runner.session(strict_agent)
    path = f"/v1/sessions/{session['id']}"
    bad(runner.post(path, json={"agent": {field: value}, "title": "Mine"}), 403, f"agent.{field}: ", "'agents'")
    assert good(runner.get(path)) | {"stats": session["stats"]} == session
    good(with_scopes("sessions", "agents").post(path, json={"agent": {field: value}}))


def test_the_scope_sessions_suffices_for_unchanged_policies_and_for_title_model_and_prompt(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any]
) -> None:
    runner = with_scopes("read", "sessions")
    same = {field: strict_agent[field] for field in ("tools", "mcp_servers", "permission_policy", "approval")}
    session = good(create(runner, strict_agent, **same, model=MODEL, system="Be brief."))
    body = {"agent": {"tools": session["agent"]["tools"], "mcp_servers": []}, "title": "Mine"}
    assert good(runner.post(f"/v1/sessions/{session['id']}", json=body))["title"] == "Mine"


@pytest.mark.parametrize(("field", "tool"), LATE_TOOLS)
def test_a_deadline_that_allows_needs_approvals_wherever_it_is_set(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any], field: str, tool: dict[str, Any]
) -> None:
    author, both = with_scopes("read", "agents", "sessions"), with_scopes("read", "agents", "sessions", "approvals")
    lists = {"tools": [tool], "mcp_servers": [SERVER] if tool["type"] == "mcp_toolset" else []}
    agents, agent = "/v1/agents", f"/v1/agents/{strict_agent['id']}"
    session = author.session(strict_agent)
    sessions = f"/v1/sessions/{session['id']}"
    bad(author.post(agents, json={"name": "A", "model": MODEL} | lists), 403, f"{field}: ", "'approvals'")
    bad(author.post(agent, json=lists), 403, f"{field}: ", "'approvals'")
    bad(create(author, strict_agent, **lists), 403, f"agent.{field}: ", "'approvals'")
    bad(author.post(sessions, json={"agent": lists}), 403, f"agent.{field}: ", "'approvals'")
    assert good(author.get(agent)) == strict_agent
    good(both.post(agents, json={"name": "A", "model": MODEL} | lists))
    good(create(both, strict_agent, **lists))
    good(both.post(sessions, json={"agent": lists}))
    late = good(both.post(agent, json=lists))
    good(author.post(agent, json={"tools": late["tools"], "name": "Renamed"}))
    bad(author.post(agent, json={"tools": [tool, CUSTOM | {"name": "other"}]}), 403, f"{field}: ", "'approvals'")


@pytest.mark.parametrize("where", ["agent", "session", "workspace", "default_config"])
def test_only_a_named_tool_can_have_a_deadline_that_allows(caller: Caller, strict_agent: dict[str, Any], where: str) -> None:
    """No wider level can, not even with every scope."""
    responses = {
        "agent": lambda: caller.post("/v1/agents", json={"name": "A", "model": MODEL, "approval": LATE}),
        "session": lambda: create(caller, strict_agent, approval=LATE),
        "workspace": lambda: caller.post("/v1/policy", json={"approval": LATE}),
        "default_config": lambda: caller.post(
            "/v1/agents", json={"name": "A", "model": MODEL, "tools": [TOOLSET | {"default_config": {"approval": LATE}}]}
        ),
    }
    bad(responses[where](), 400, "approval")
