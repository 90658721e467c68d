"""Agents name their MCP servers and configure the tools of each. Responses spell out the defaults, and both lists must match."""

from typing import Any

import psycopg
import pytest
from anthropic import Anthropic
from doors.served import MODEL, Caller, bad, good
from doors.with_servers import BASE, BILLING, GITHUB, both, of, url
from own_database import DatabaseUrls

from models.workspace import toolset as toolsets

ASK, ALLOW, DENY = ({"type": f"always_{effect}"} for effect in ("ask", "allow", "deny"))
RULES = {"type": "rules", "rules": [{"effect": "deny", "match": {"tool": "mcp__github__*"}}], "default": "ask"}
RETURNED = {"type": "auto", "rules": [{"effect": "deny", "match": "mcp__github__*"}], "default": "ask"}


@pytest.fixture
def billing(clean_database: object) -> None:
    """A worker has announced the toolset `billing`."""
    toolsets.announce({"billing": []})


def test_a_toolset_of_a_server_comes_back_with_its_defaults_spelled_out(caller: Caller) -> None:
    agent = caller.agent(**both())
    assert agent["mcp_servers"] == [GITHUB]
    default = {"enabled": True, "permission_policy": ASK, "policy_from": "default"}
    assert agent["tools"] == [of(default_config=default, configs=[])]
    assert agent["disable_parallel_tool_use"] is False


def test_a_tool_s_own_settings_win_over_the_defaults_of_its_toolset(caller: Caller) -> None:
    configs = [
        {"name": "push", "permission_policy": DENY},
        {"name": "get issue/1", "enabled": True},
        {"name": "merge", "permission_policy": ALLOW, "approval": {"timeout_seconds": 5, "prompt": "Merge {number}?"}},
        {"name": "close"},
    ]
    [toolset] = caller.agent(**both(of(default_config={"enabled": False, "permission_policy": RULES}, configs=configs)))["tools"]
    denies = {"type": "auto", "rules": [], "default": "deny"}
    assert toolset["default_config"] == {"enabled": False, "permission_policy": RETURNED, "policy_from": "toolset"}
    asking = {"timeout_seconds": 5, "on_timeout": None, "remind_after_seconds": None, "prompt": "Merge {number}?"}
    assert toolset["configs"] == [
        {"name": "push", "enabled": False, "permission_policy": denies, "policy_from": "tool"},
        {"name": "get issue/1", "enabled": True, "permission_policy": RETURNED, "policy_from": "toolset"},
        {"name": "merge", "enabled": False, "permission_policy": ALLOW, "policy_from": "tool", "approval": asking},
        {"name": "close", "enabled": False, "permission_policy": RETURNED, "policy_from": "toolset"},
    ]


@pytest.mark.parametrize("default", [None, {}, {"enabled": False}, *({"permission_policy": p} for p in (ASK, ALLOW, DENY, RULES))])
def test_an_update_with_the_returned_lists_makes_no_version(caller: Caller, default: dict[str, Any] | None) -> None:
    configs = [{"name": "a"}, {"name": "b", "permission_policy": ASK}, {"name": "c", "permission_policy": RULES, "enabled": False}]
    agent = caller.agent(**both(of(default_config=default, configs=configs)), disable_parallel_tool_use=True)
    back = {name: agent[name] for name in ("tools", "mcp_servers", "disable_parallel_tool_use")}
    assert good(caller.post(f"/v1/agents/{agent['id']}", json=back)) == agent
    assert caller.agent(**back)["tools"] == agent["tools"]


def test_an_update_by_the_sdk_with_the_returned_lists_makes_no_version(strict: Anthropic, billing: None) -> None:
    servers: Any = [GITHUB, BILLING]
    for policy in (None, ASK, ALLOW, DENY, RULES):
        config: Any = {"permission_policy": policy}
        tools: Any = [of(default_config=config, configs=[{"name": "a"} | config, {"name": "b"}]), of("billing")]
        agent = strict.beta.agents.create(name="A", model=MODEL, tools=tools, mcp_servers=servers)
        assert strict.beta.agents.retrieve(agent.id).to_dict() == agent.to_dict()
        back: Any = agent.to_dict(mode="json")
        again = strict.beta.agents.update(agent.id, version=1, tools=back["tools"], mcp_servers=back["mcp_servers"])
        assert again.version == 1
        assert [server.url for server in again.mcp_servers] == [GITHUB["url"], "assent:billing"]


def test_policy_from_names_the_level_that_set_the_policy(caller: Caller) -> None:
    agent = caller.agent(**both(of(configs=[{"name": "a"}])))
    path, tools = f"/v1/agents/{agent['id']}", agent["tools"]
    tools[0]["default_config"] = {"permission_policy": ASK}
    [toolset] = good(caller.post(path, json={"tools": tools}))["tools"]
    assert (toolset["default_config"]["policy_from"], toolset["configs"][0]["policy_from"]) == ("toolset", "tool")
    tools[0]["default_config"] = {"permission_policy": ALLOW, "policy_from": "default"}
    [toolset] = good(caller.post(path, json={"tools": tools}))["tools"]
    assert (toolset["default_config"]["permission_policy"], toolset["default_config"]["policy_from"]) == (ALLOW, "toolset")
    assert (toolset["configs"][0]["permission_policy"], toolset["configs"][0]["policy_from"]) == (ASK, "tool")


def test_each_change_of_either_list_is_a_version(caller: Caller) -> None:
    agent = caller.agent()
    path = f"/v1/agents/{agent['id']}"
    assert good(caller.post(path, json=both()))["version"] == 2
    assert good(caller.post(path, json={"mcp_servers": [GITHUB | {"url": "https://else.example.org"}]}))["version"] == 3
    assert good(caller.post(path, json={"tools": [of(configs=[{"name": "a"}])]}))["version"] == 4
    assert good(caller.post(path, json={"disable_parallel_tool_use": True}))["disable_parallel_tool_use"] is True
    cleared = good(caller.post(path, json={"mcp_servers": None, "tools": None, "disable_parallel_tool_use": None}))
    assert (cleared["version"], cleared["mcp_servers"], cleared["tools"]) == (6, [], [])
    assert cleared["disable_parallel_tool_use"] is False
    assert good(caller.get(path, params={"version": 2}))["mcp_servers"] == [GITHUB]


def test_the_stored_list_must_match_the_list_that_is_sent(caller: Caller) -> None:
    agent = caller.agent(**both())
    path = f"/v1/agents/{agent['id']}"
    bad(caller.post(path, json={"mcp_servers": []}), 400, "mcp_servers: ", "'github'", "send tools as well")
    bad(caller.post(path, json={"tools": [of(), of("gitlab")]}), 400, "tools.1.mcp_server_name: 'gitlab'", "'github'")
    bad(caller.post(path, json={"mcp_servers": [BILLING], "tools": [of()]}), 400, "tools.0.mcp_server_name: 'github'")
    assert good(caller.get(path)) == agent, "refused changes left nothing behind"
    moved = GITHUB | {"name": "gitlab"}
    assert good(caller.post(path, json=both(of("gitlab"), servers=(moved,))))["mcp_servers"] == [moved]
    assert good(caller.post(path, json={"tools": []}))["mcp_servers"] == [moved], "a server may have no toolset"


def test_a_stale_version_is_reported_before_lists_that_do_not_match(caller: Caller) -> None:
    agent = caller.agent(**both())
    path = f"/v1/agents/{agent['id']}"
    good(caller.post(path, json={"name": "New"}))
    bad(caller.post(path, json={"mcp_servers": [], "version": 1}), 409, "version 2")


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org",
        "https://example.org:8443/mcp/?key=a%20b&x=(1)",
        "https://192.0.2.7/mcp",
        "https://[2001:db8::1]:8443/mcp",
        "https://Example.ORG./~user/@me",
        "https://example.org/" + "x" * 2028,
    ],
)
def test_an_address_comes_back_as_it_was_sent(caller: Caller, address: str) -> None:
    assert caller.agent(**url(address))["mcp_servers"][1]["url"] == address


def test_a_toolset_of_the_operator_s_must_be_known(caller: Caller) -> None:
    bad(caller.post("/v1/agents", json=BASE | {"mcp_servers": [BILLING]}), 400, "mcp_servers.0.url: assent:billing ", "none")
    toolsets.announce({"billing": [], "crm": []})
    agent = caller.agent(mcp_servers=[BILLING])
    path = f"/v1/agents/{agent['id']}"
    wrong = BILLING | {"url": "assent:bills"}
    error = bad(caller.post(path, json={"mcp_servers": [GITHUB, wrong]}), 400, "mcp_servers.1.url: assent:bills ")
    assert "assent:billing, assent:crm" in error["message"]
    over = {"type": "agent_with_overrides", "id": agent["id"], "mcp_servers": [wrong]}
    body = {"environment_id": caller.environment_id(), "agent": over}
    bad(caller.post("/v1/sessions", json=body), 400, "agent.mcp_servers.0.url: assent:bills ")


def test_a_toolset_that_has_disappeared_prevents_no_other_change(
    caller: Caller, database_urls: DatabaseUrls, billing: None
) -> None:
    agent = caller.agent(**both(of("billing"), servers=(BILLING,)))
    with psycopg.connect(database_urls.owner) as db:
        db.execute("DELETE FROM toolset")
    assert good(caller.post(f"/v1/agents/{agent['id']}", json={"name": "New"}))["name"] == "New"
    assert caller.session(agent)["agent"]["mcp_servers"] == [BILLING]
    bad(caller.post(f"/v1/agents/{agent['id']}", json={"mcp_servers": [BILLING]}), 400, "mcp_servers.0.url: assent:billing ")


def test_a_session_s_overrides_replace_either_list(caller: Caller, strict: Anthropic, billing: None) -> None:
    agent = caller.agent(**both(of(configs=[{"name": "a"}])))
    environment_id = caller.environment_id()
    over: Any = {"type": "agent_with_overrides", "id": agent["id"], **both(of("billing"), servers=(BILLING,))}
    session = strict.beta.sessions.create(agent=over, environment_id=environment_id)
    assert [server.to_dict() for server in session.agent.mcp_servers] == [BILLING]
    plain = strict.beta.sessions.create(agent=agent["id"], environment_id=environment_id)
    assert plain.to_dict()["agent"]["tools"] == agent["tools"]
    alone = {"type": "agent_with_overrides", "id": agent["id"], "mcp_servers": [BILLING]}
    body = {"agent": alone, "environment_id": environment_id}
    bad(caller.post("/v1/sessions", json=body), 400, "agent.mcp_servers: ", "'github'", "send tools as well")
    assert good(caller.post("/v1/sessions", json=body | {"agent": alone | {"tools": []}}))["agent"]["mcp_servers"] == [BILLING]


def test_a_change_of_a_session_s_lists_is_an_event(caller: Caller, strict: Anthropic, billing: None) -> None:
    session = caller.session(caller.agent(**both()))
    path = f"/v1/sessions/{session['id']}"
    lists: Any = both(of(), of("billing", default_config={"permission_policy": RULES}), servers=(GITHUB, BILLING))
    changed = strict.beta.sessions.update(session["id"], agent=lists)
    assert [server.name for server in changed.agent.mcp_servers] == ["github", "billing"]
    [event] = strict.beta.sessions.events.list(session["id"])
    updated: Any = event.to_dict()
    assert (updated["type"], updated["agent"]["mcp_servers"]) == ("session.updated", [GITHUB, BILLING])
    agent = good(caller.get(path))["agent"]
    good(caller.post(path, json={"agent": {"tools": agent["tools"], "mcp_servers": agent["mcp_servers"]}}))
    assert len(caller.events(session["id"])) == 1, "an update without a change is not an event"
    bad(caller.post(path, json={"agent": {"mcp_servers": [BILLING]}}), 400, "agent.mcp_servers: ", "'github'")
    assert good(caller.get(path))["agent"] == agent
    assert good(caller.post(path, json={"agent": {"tools": []}}))["agent"]["mcp_servers"] == [GITHUB, BILLING]
    assert good(caller.post(path, json={"agent": {"mcp_servers": []}}))["agent"]["mcp_servers"] == []
    caller.say(session["id"])
    bad(caller.post(path, json={"agent": {"mcp_servers": [GITHUB]}}), 409, "running")
