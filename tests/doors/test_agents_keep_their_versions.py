"""Agents: every change is a version, and nobody overwrites what they have not seen."""

from doors.served import MODEL, Caller, bad, good

TOOLSET = {"type": "agent_toolset_20260401"}


def test_a_new_agent_is_at_version_1_with_every_default_spelled_out(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET])
    assert agent["version"] == 1
    assert agent["model"] == {"id": MODEL}
    [toolset] = agent["tools"]
    assert toolset["default_config"] == {"enabled": True, "permission_policy": {"type": "always_ask"}}
    assert [c["name"] for c in toolset["configs"]] == ["bash", "edit", "read", "write", "glob", "grep"]
    assert all(c["permission_policy"] == {"type": "always_ask"} for c in toolset["configs"])


def test_an_update_makes_a_version_and_keeps_what_it_leaves_out(caller: Caller) -> None:
    agent = caller.agent(system="Be kind.", metadata={"a": "1", "b": "2"})
    new = good(caller.post(f"/v1/agents/{agent['id']}", json={"name": "New", "metadata": {"a": None, "c": "3"}}))
    assert (new["version"], new["name"], new["system"]) == (2, "New", "Be kind.")
    assert new["metadata"] == {"b": "2", "c": "3"}
    old = good(caller.get(f"/v1/agents/{agent['id']}", params={"version": 1}))
    assert (old["name"], old["metadata"]) == ("Agent", {"a": "1", "b": "2"})


def test_an_update_without_a_change_makes_no_version(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET])
    again = good(caller.post(f"/v1/agents/{agent['id']}", json={"name": "Agent", "tools": agent["tools"]}))
    assert again["version"] == 1


def test_a_stale_version_is_refused_with_the_current_version(caller: Caller) -> None:
    agent = caller.agent()
    good(caller.post(f"/v1/agents/{agent['id']}", json={"name": "One", "version": 1}))
    error = bad(caller.post(f"/v1/agents/{agent['id']}", json={"name": "Two", "version": 1}), 409, "version 2")
    assert error["type"] == "conflict_error"
    assert error["winner"] == {"version": 2}


def test_null_clears_what_can_be_cleared(caller: Caller) -> None:
    agent = caller.agent(system="Be kind.", description="d", tools=[TOOLSET])
    path = f"/v1/agents/{agent['id']}"
    good(caller.post(path, json={"permission_policy": {"type": "always_ask"}, "approval": {"timeout_seconds": 2}}))
    cleared = {"system": None, "description": "", "tools": None, "permission_policy": None, "approval": None}
    new = good(caller.post(path, json=cleared))
    assert {name: new[name] for name in cleared} == cleared | {"description": None, "tools": []}
    bad(caller.post(path, json={"name": None}), 400, "name", "leave it out")
    bad(caller.post(path, json={"model": None}), 400, "model", "leave it out")


def test_versions_are_listed_newest_first_page_by_page(caller: Caller) -> None:
    path = f"/v1/agents/{caller.agent()['id']}"
    for n in range(4):
        good(caller.post(path, json={"name": f"v{n}"}))
    versions, page = [], ""
    while page is not None:
        response = good(caller.get(f"{path}/versions", params={"limit": 2} | ({"page": page} if page else {})))
        versions += [agent["version"] for agent in response["data"]]
        page = response["next_page"]
    assert versions == [5, 4, 3, 2, 1]


def test_an_archived_agent_takes_no_change_and_no_session_and_leaves_the_list(caller: Caller) -> None:
    agent = caller.agent()
    path = f"/v1/agents/{agent['id']}"
    assert good(caller.post(f"{path}/archive"))["archived_at"]
    assert good(caller.post(f"{path}/archive"))["archived_at"]
    bad(caller.post(path, json={"name": "New"}), 409, "archived")
    body = {"agent": agent["id"], "environment_id": caller.environment_id()}
    bad(caller.post("/v1/sessions", json=body), 400, "agent", "archived")
    assert good(caller.get("/v1/agents"))["data"] == []
    assert [a["id"] for a in good(caller.get("/v1/agents", params={"include_archived": "true"}))["data"]] == [agent["id"]]


def test_a_list_is_newest_first_and_an_agent_created_between_two_pages_does_not_shift_it(caller: Caller) -> None:
    agent_ids = [caller.agent(name=f"a{n}")["id"] for n in range(5)]
    first = good(caller.get("/v1/agents", params={"limit": 2}))
    caller.agent(name="between")
    second = good(caller.get("/v1/agents", params={"limit": 100, "page": first["next_page"]}))
    assert [a["id"] for a in first["data"] + second["data"]] == agent_ids[::-1]
    assert second["next_page"] is None


def test_a_disabled_tool_comes_back_disabled_unless_this_server_lacks_it(caller: Caller) -> None:
    configs = [{"name": "glob", "enabled": False}, {"name": "web_fetch", "enabled": False}]
    agent = caller.agent(tools=[{**TOOLSET, "configs": configs}])
    enabled = {config["name"]: config["enabled"] for config in agent["tools"][0]["configs"]}
    assert enabled == dict.fromkeys(("bash", "edit", "read", "write", "grep"), True) | {"glob": False}
