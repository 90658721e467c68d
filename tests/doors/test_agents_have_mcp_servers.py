"""Agents name their MCP servers, and what holds for the tools of each: taken, returned spelled out, kept consistent."""

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
    """A worker has said that it has the toolset `billing`."""
    toolsets.announce({"billing": []})


def test_a_toolset_of_a_server_comes_back_with_its_defaults_spelled_out(caller: Caller) -> None:
    agent = caller.agent(**both())
    assert agent["mcp_servers"] == [GITHUB]
    default = {"enabled": True, "permission_policy": ASK, "policy_from": "default"}
    assert agent["tools"] == [of(default_config=default, configs=[])]
    assert agent["disable_parallel_tool_use"] is False


def test_a_tool_that_is_named_has_what_it_was_given_and_else_its_toolset_s(caller: Caller) -> None:
    configs = [
        {"name": "push", "permission_policy": DENY},
        {"name": "get issue/1", "enabled": True},
        {"name": "merge", "permission_policy": ALLOW, "approval": {"timeout_seconds": 5, "prompt": "Merge {number}?"}},
        {"name": "close"},
    ]
    [found] = caller.agent(**both(of(default_config={"enabled": False, "permission_policy": RULES}, configs=configs)))["tools"]
    denies = {"type": "auto", "rules": [], "default": "deny"}
    assert found["default_config"] == {"enabled": False, "permission_policy": RETURNED, "policy_from": "toolset"}
    asking = {"timeout_seconds": 5, "on_timeout": None, "remind_after_seconds": None, "prompt": "Merge {number}?"}
    assert found["configs"] == [
        {"name": "push", "enabled": False, "permission_policy": denies, "policy_from": "tool"},
        {"name": "get issue/1", "enabled": True, "permission_policy": RETURNED, "policy_from": "toolset"},
        {"name": "merge", "enabled": False, "permission_policy": ALLOW, "policy_from": "tool", "approval": asking},
        {"name": "close", "enabled": False, "permission_policy": RETURNED, "policy_from": "toolset"},
    ]


@pytest.mark.parametrize("default", [None, {}, {"enabled": False}, *({"permission_policy": p} for p in (ASK, ALLOW, DENY, RULES))])
def test_what_is_sent_back_as_it_came_makes_no_version(caller: Caller, default: dict[str, Any] | None) -> None:
    configs = [{"name": "a"}, {"name": "b", "permission_policy": ASK}, {"name": "c", "permission_policy": RULES, "enabled": False}]
    agent = caller.agent(**both(of(default_config=default, configs=configs)), disable_parallel_tool_use=True)
    back = {name: agent[name] for name in ("tools", "mcp_servers", "disable_parallel_tool_use")}
    assert good(caller.post(f"/v1/agents/{agent['id']}", json=back)) == agent
    assert caller.agent(**back)["tools"] == agent["tools"]


def test_what_the_strict_sdk_was_given_goes_back_by_it_and_makes_no_version(strict: Anthropic, billing: None) -> None:
    servers: Any = [GITHUB, BILLING]
    for policy in (None, ASK, ALLOW, DENY, RULES):
        said: Any = {"permission_policy": policy}
        tools: Any = [of(default_config=said, configs=[{"name": "a"} | said, {"name": "b"}]), of("billing")]
        agent = strict.beta.agents.create(name="A", model=MODEL, tools=tools, mcp_servers=servers)
        assert strict.beta.agents.retrieve(agent.id).to_dict() == agent.to_dict()
        back: Any = agent.to_dict(mode="json")
        again = strict.beta.agents.update(agent.id, version=1, tools=back["tools"], mcp_servers=back["mcp_servers"])
        assert again.version == 1
        assert [server.url for server in again.mcp_servers] == [GITHUB["url"], "assent:billing"]


def test_a_policy_that_is_said_is_no_longer_nobody_s(caller: Caller) -> None:
    agent = caller.agent(**both(of(configs=[{"name": "a"}])))
    path, tools = f"/v1/agents/{agent['id']}", agent["tools"]
    tools[0]["default_config"] = {"permission_policy": ASK}
    [found] = good(caller.post(path, json={"tools": tools}))["tools"]
    assert (found["default_config"]["policy_from"], found["configs"][0]["policy_from"]) == ("toolset", "tool")
    tools[0]["default_config"] = {"permission_policy": ALLOW, "policy_from": "default"}
    [found] = good(caller.post(path, json={"tools": tools}))["tools"]
    assert (found["default_config"]["permission_policy"], found["default_config"]["policy_from"]) == (ALLOW, "toolset")
    assert (found["configs"][0]["permission_policy"], found["configs"][0]["policy_from"]) == (ASK, "tool")


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


def test_the_list_that_is_kept_must_go_with_the_one_that_is_sent(caller: Caller) -> None:
    agent = caller.agent(**both())
    path = f"/v1/agents/{agent['id']}"
    bad(caller.post(path, json={"mcp_servers": []}), 400, "mcp_servers: ", "'github'", "send tools as well")
    bad(caller.post(path, json={"tools": [of(), of("gitlab")]}), 400, "tools.1.mcp_server_name: 'gitlab'", "'github'")
    bad(caller.post(path, json={"mcp_servers": [BILLING], "tools": [of()]}), 400, "tools.0.mcp_server_name: 'github'")
    assert good(caller.get(path)) == agent, "what was refused left nothing behind"
    moved = GITHUB | {"name": "gitlab"}
    assert good(caller.post(path, json=both(of("gitlab"), servers=(moved,))))["mcp_servers"] == [moved]
    assert good(caller.post(path, json={"tools": []}))["mcp_servers"] == [moved], "a server may have no toolset"


def test_a_stale_version_is_said_before_what_does_not_go_together(caller: Caller) -> None:
    agent = caller.agent(**both())
    path = f"/v1/agents/{agent['id']}"
    good(caller.post(path, json={"name": "New"}))
    bad(caller.post(path, json={"mcp_servers": [], "version": 1}), 409, "version 2")


@pytest.mark.parametrize(
    "said",
    [
        "https://example.org",
        "https://example.org:8443/mcp/?key=a%20b&x=(1)",
        "https://192.0.2.7/mcp",
        "https://[2001:db8::1]:8443/mcp",
        "https://Example.ORG./~user/@me",
        "https://example.org/" + "x" * 2028,
    ],
)
def test_an_address_comes_back_as_it_was_sent(caller: Caller, said: str) -> None:
    assert caller.agent(**url(said))["mcp_servers"][1]["url"] == said


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


def test_a_toolset_that_is_gone_since_stops_no_other_change(caller: Caller, database_urls: DatabaseUrls, billing: None) -> None:
    agent = caller.agent(**both(of("billing"), servers=(BILLING,)))
    with psycopg.connect(database_urls.owner) as db:
        db.execute("DELETE FROM toolset")
    assert good(caller.post(f"/v1/agents/{agent['id']}", json={"name": "New"}))["name"] == "New"
    assert caller.session(agent)["agent"]["mcp_servers"] == [BILLING]
    bad(caller.post(f"/v1/agents/{agent['id']}", json={"mcp_servers": [BILLING]}), 400, "mcp_servers.0.url: assent:billing ")


def test_a_session_s_overrides_replace_either_list(caller: Caller, strict: Anthropic, billing: None) -> None:
    agent = caller.agent(**both(of(configs=[{"name": "a"}])))
    where = caller.environment_id()
    over: Any = {"type": "agent_with_overrides", "id": agent["id"], **both(of("billing"), servers=(BILLING,))}
    session = strict.beta.sessions.create(agent=over, environment_id=where)
    assert [server.to_dict() for server in session.agent.mcp_servers] == [BILLING]
    kept = strict.beta.sessions.create(agent=agent["id"], environment_id=where)
    assert kept.to_dict()["agent"]["tools"] == agent["tools"]
    alone = {"type": "agent_with_overrides", "id": agent["id"], "mcp_servers": [BILLING]}
    said = {"agent": alone, "environment_id": where}
    bad(caller.post("/v1/sessions", json=said), 400, "agent.mcp_servers: ", "'github'", "send tools as well")
    assert good(caller.post("/v1/sessions", json=said | {"agent": alone | {"tools": []}}))["agent"]["mcp_servers"] == [BILLING]


def test_a_session_s_lists_can_change_and_say_so(caller: Caller, strict: Anthropic, billing: None) -> None:
    session = caller.session(caller.agent(**both()))
    path = f"/v1/sessions/{session['id']}"
    lists: Any = both(of(), of("billing", default_config={"permission_policy": RULES}), servers=(GITHUB, BILLING))
    changed = strict.beta.sessions.update(session["id"], agent=lists)
    assert [server.name for server in changed.agent.mcp_servers] == ["github", "billing"]
    [event] = strict.beta.sessions.events.list(session["id"])
    said: Any = event.to_dict()
    assert (said["type"], said["agent"]["mcp_servers"]) == ("session.updated", [GITHUB, BILLING])
    found = good(caller.get(path))["agent"]
    good(caller.post(path, json={"agent": {"tools": found["tools"], "mcp_servers": found["mcp_servers"]}}))
    assert len(caller.events(session["id"])) == 1, "what changes nothing is no event"
    bad(caller.post(path, json={"agent": {"mcp_servers": [BILLING]}}), 400, "agent.mcp_servers: ", "'github'")
    assert good(caller.get(path))["agent"] == found
    assert good(caller.post(path, json={"agent": {"tools": []}}))["agent"]["mcp_servers"] == [GITHUB, BILLING]
    assert good(caller.post(path, json={"agent": {"mcp_servers": []}}))["agent"]["mcp_servers"] == []
    caller.say(session["id"])
    bad(caller.post(path, json={"agent": {"mcp_servers": [GITHUB]}}), 409, "running")
