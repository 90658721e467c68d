"""A request of the hosted service that this server refuses is a 400 that names the field, and is in docs/hosted-service.md."""

from pathlib import Path
from typing import Any

import pytest
from doors.served import MODEL, Caller, bad, message

TABLE = (Path(__file__).parents[2] / "docs/hosted-service.md").read_text()

AGENT = {"name": "A", "model": MODEL}
SET = "agent_toolset_20260401"
ENVIRONMENT = {"name": "E"}

AGENTS: list[tuple[str, dict[str, Any], str]] = [
    ("`inference_geo`", {"model": {"id": MODEL, "inference_geo": "eu"}}, "model.inference_geo"),
    ("`speed: fast`", {"model": {"id": MODEL, "speed": "fast"}}, "model.speed"),
    ("`web_fetch`", {"tools": [{"type": SET, "configs": [{"name": "web_fetch", "enabled": True}]}]}, "tools"),
    ("`web_search`", {"tools": [{"type": SET, "configs": [{"name": "web_search"}]}]}, "tools"),
    ("`auto` alone", {"tools": [{"type": SET, "default_config": {"permission_policy": {"type": "auto"}}}]}, "default"),
    ("`http://`", {"mcp_servers": [{"type": "url", "name": "x", "url": "http://example.org"}]}, "mcp_servers.0.url"),
    ("`assent:NAME`", {"mcp_servers": [{"type": "url", "name": "x", "url": "assent:nobody-s"}]}, "mcp_servers.0.url"),
    ("`skills`", {"skills": [{"type": "custom", "skill_id": "x"}]}, "skills"),
    ("`advisor`", {"multiagent": {"type": "coordinator", "agents": [{"type": "advisor", "model": MODEL}]}}, "multiagent.agents.0"),
    ("`workflows`", {"multiagent": {"type": "multiagent_20261001", "workflows": {"type": "enabled"}}}, "multiagent.workflows"),
]
ENVIRONMENTS: list[tuple[str, dict[str, Any], str]] = [
    ("`unrestricted`", {"config": {"type": "cloud", "networking": {"type": "unrestricted"}}}, "config.networking"),
    ("`packages`", {"config": {"type": "cloud", "packages": {"pip": ["numpy"]}}}, "config.packages.pip"),
    ("`scope: account`", {"scope": "account"}, "scope"),
]
SESSIONS: list[tuple[str, dict[str, Any], str]] = [
    ("`resources`", {"resources": [{"type": "file", "file_id": "x"}]}, "resources"),
    ("`vault_ids`", {"vault_ids": ["vlt_1"]}, "vault_ids"),
]
EVENTS: list[tuple[str, dict[str, Any], str]] = [
    ("`user.define_outcome`", {"type": "user.define_outcome", "description": "d"}, "events.0"),
    ("`system.message`", {"type": "system.message", "content": [{"type": "text", "text": "t"}]}, "events.0"),
    (
        "`file` sources",
        message() | {"content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]},
        "events.0.content.0",
    ),
    ("`redacted` blocks", message() | {"content": [{"type": "redacted"}]}, "events.0.content.0"),
]


FEATURES = [
    ("Files", "/v1/files"),
    ("Files", "/v1/files/file_1/content"),
    ("memory stores", "/v1/memory_stores"),
    ("vaults", "/v1/vaults/vlt_1/credentials"),
    ("skills", "/v1/skills"),
    ("deployments", "/v1/deployments"),
    ("deployments", "/v1/deployment_runs"),
    ("dreams", "/v1/dreams"),
    ("user profiles", "/v1/user_profiles"),
    ("tunnels", "/v1/tunnels"),
    ("compliance reviews", "/v1/compliance/review"),
    ("Messages API", "/v1/messages"),
    ("organization", "/v1/organizations/rate_limits"),
]


@pytest.mark.parametrize(("words", "path"), FEATURES, ids=lambda value: value)
def test_a_feature_that_is_missing_is_a_404_that_names_it_and_the_page(caller: Caller, words: str, path: str) -> None:
    assert words in TABLE
    for response in (caller.get(path), caller.post(path, json={})):
        text = bad(response, 404, "docs/hosted-service.md")["message"]
        assert words.lower() in text.lower()


def test_workspaces_are_made_where_the_server_runs(caller: Caller) -> None:
    assert "assent workspaces create NAME" in TABLE
    bad(caller.post("/v1/organizations/workspaces", json={"name": "Mine"}), 404, "assent workspaces create NAME")


@pytest.mark.parametrize(("words", "more", "field"), AGENTS, ids=lambda value: value if isinstance(value, str) else "")
def test_refused_agents_are_documented(caller: Caller, words: str, more: dict[str, Any], field: str) -> None:
    assert words in TABLE
    bad(caller.post("/v1/agents", json=AGENT | more), 400, field)


@pytest.mark.parametrize(("words", "more", "field"), ENVIRONMENTS, ids=lambda value: value if isinstance(value, str) else "")
def test_refused_environments_are_documented(caller: Caller, words: str, more: dict[str, Any], field: str) -> None:
    assert words in TABLE
    bad(caller.post("/v1/environments", json=ENVIRONMENT | more), 400, field)


@pytest.mark.parametrize(("words", "more", "field"), SESSIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_refused_sessions_are_documented(caller: Caller, words: str, more: dict[str, Any], field: str) -> None:
    assert words in TABLE
    body = {"agent": caller.agent()["id"], "environment_id": caller.environment_id()}
    bad(caller.post("/v1/sessions", json=body | more), 400, field)


@pytest.mark.parametrize(("words", "event", "field"), EVENTS, ids=lambda value: value if isinstance(value, str) else "")
def test_refused_events_are_documented(caller: Caller, words: str, event: dict[str, Any], field: str) -> None:
    assert words in TABLE
    bad(caller.tell(caller.session()["id"], event), 400, field)


def test_an_mcp_server_without_a_toolset_is_accepted_as_documented(caller: Caller) -> None:
    assert "A server that no `mcp_toolset` names is accepted and gives no tools." in TABLE
    server = {"type": "url", "name": "x", "url": "https://example.org"}
    assert caller.agent(mcp_servers=[server])["mcp_servers"] == [server]
