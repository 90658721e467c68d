"""Who may run sessions may not loosen what asks: that takes the scopes of those who write policies and of those who decide."""

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
    """An agent whose every call asks."""
    return caller.agent(tools=[TOOLSET], permission_policy=ASK)


def creating(caller: Caller, agent: dict[str, Any], **overrides: Any) -> Any:
    """A try at a session with overrides."""
    said = {"type": "agent_with_overrides", "id": agent["id"]} | overrides
    return caller.post("/v1/sessions", json={"agent": said, "environment_id": caller.environment_id()})


@pytest.mark.parametrize(("field", "value"), OVERRIDES)
def test_overriding_what_allows_needs_agents(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any], field: str, value: Any
) -> None:
    runner = with_scopes("read", "sessions")
    error = bad(creating(runner, strict_agent, **{field: value}), 403, f"agent.{field}: ", "'agents'")
    assert error["type"] == "permission_error"
    assert good(runner.get("/v1/sessions"))["data"] == []
    good(creating(with_scopes("read", "sessions", "agents"), strict_agent, **{field: value}))


@pytest.mark.parametrize(("field", "value"), [("tools", [LOOSE]), ("tools", []), ("mcp_servers", [SERVER])])
def test_updating_what_allows_needs_agents(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any], field: str, value: Any
) -> None:
    runner = with_scopes("read", "sessions")
    session = runner.session(strict_agent)
    path = f"/v1/sessions/{session['id']}"
    bad(runner.post(path, json={"agent": {field: value}, "title": "Mine"}), 403, f"agent.{field}: ", "'agents'")
    assert good(runner.get(path)) | {"stats": session["stats"]} == session
    good(with_scopes("sessions", "agents").post(path, json={"agent": {field: value}}))


def test_who_runs_sessions_sends_back_what_they_were_given(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any]
) -> None:
    """The same again loosens nothing, and neither do a title, a model and a system prompt."""
    runner = with_scopes("read", "sessions")
    same = {field: strict_agent[field] for field in ("tools", "mcp_servers", "permission_policy", "approval")}
    session = good(creating(runner, strict_agent, **same, model=MODEL, system="Be brief."))
    said = {"agent": {"tools": session["agent"]["tools"], "mcp_servers": []}, "title": "Mine"}
    assert good(runner.post(f"/v1/sessions/{session['id']}", json=said))["title"] == "Mine"


@pytest.mark.parametrize(("field", "tool"), LATE_TOOLS)
def test_a_deadline_that_allows_needs_approvals_wherever_it_is_set(
    with_scopes: Callable[..., Caller], strict_agent: dict[str, Any], field: str, tool: dict[str, Any]
) -> None:
    author, both = with_scopes("read", "agents", "sessions"), with_scopes("read", "agents", "sessions", "approvals")
    said = {"tools": [tool], "mcp_servers": [SERVER] if tool["type"] == "mcp_toolset" else []}
    agents, agent = "/v1/agents", f"/v1/agents/{strict_agent['id']}"
    session = author.session(strict_agent)
    sessions = f"/v1/sessions/{session['id']}"
    bad(author.post(agents, json={"name": "A", "model": MODEL} | said), 403, f"{field}: ", "'approvals'")
    bad(author.post(agent, json=said), 403, f"{field}: ", "'approvals'")
    bad(creating(author, strict_agent, **said), 403, f"agent.{field}: ", "'approvals'")
    bad(author.post(sessions, json={"agent": said}), 403, f"agent.{field}: ", "'approvals'")
    assert good(author.get(agent)) == strict_agent
    good(both.post(agents, json={"name": "A", "model": MODEL} | said))
    good(creating(both, strict_agent, **said))
    good(both.post(sessions, json={"agent": said}))
    late = good(both.post(agent, json=said))
    good(author.post(agent, json={"tools": late["tools"], "name": "Renamed"}))
    bad(author.post(agent, json={"tools": [tool, CUSTOM | {"name": "other"}]}), 403, f"{field}: ", "'approvals'")


@pytest.mark.parametrize("where", ["agent", "session", "workspace", "default_config"])
def test_no_wider_level_can_have_a_deadline_allow(caller: Caller, strict_agent: dict[str, Any], where: str) -> None:
    """Not even with every scope: only a tool's own configuration says so, by the tool's name."""
    answers = {
        "agent": lambda: caller.post("/v1/agents", json={"name": "A", "model": MODEL, "approval": LATE}),
        "session": lambda: creating(caller, strict_agent, approval=LATE),
        "workspace": lambda: caller.post("/v1/policy", json={"approval": LATE}),
        "default_config": lambda: caller.post(
            "/v1/agents", json={"name": "A", "model": MODEL, "tools": [TOOLSET | {"default_config": {"approval": LATE}}]}
        ),
    }
    bad(answers[where](), 400, "approval")
