"""`POST /v1/policy/explain` names the rule that decides about a call, and why. It stores nothing and uses up no grant."""

from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from rows.stage import Stage, call

TOOLSET = {"type": "agent_toolset_20260401"}


def rules(*pairs: tuple[str, Any], default: str = "ask") -> dict[str, Any]:
    """Return a policy with a rule for each pair of effect and match."""
    return {"type": "rules", "rules": [{"effect": effect, "match": match} for effect, match in pairs], "default": default}


@pytest.fixture
def agent(caller: Caller) -> dict[str, Any]:
    """An agent that may read, must ask for most commands, and never pushes."""
    bash = {"name": "bash", "permission_policy": rules(("allow", "bash(git status *)"), ("allow", "bash(ls *)"))}
    read = {"name": "read", "permission_policy": {"type": "always_allow"}}
    tools = [
        TOOLSET | {"configs": [bash, read]},
        {"type": "custom", "name": "refund", "description": "", "input_schema": {"type": "object"}},
    ]
    return caller.agent(tools=tools, permission_policy=rules(("deny", "bash(git push *)"), ("ask", "bash(ls secret *)")))


def explain(caller: Caller, where: dict[str, Any], tool: str, **arguments: Any) -> dict[str, Any]:
    """Explain a call. `where`: the agent or the session, and a proposed policy if any."""
    return good(caller.post("/v1/policy/explain", json=where | {"tool": tool, "input": arguments}))


@pytest.mark.parametrize(
    ("command", "effect", "source", "rule"),
    [
        ("ls -l", "allow", "tool", "tool rule: allow bash(ls *)"),
        ("git push origin", "deny", "agent", "agent rule: deny bash(git push *)"),
        ("ls; git push", "deny", "agent", "agent rule: deny bash(git push *)"),
        ("ls secret", "ask", "agent", "agent rule: ask bash(ls secret *)"),
        ("rm x", "ask", "default", "tool bash: ask"),
    ],
)
def test_the_rule_that_decides_is_named(
    caller: Caller, agent: dict[str, Any], command: str, effect: str, source: str, rule: str
) -> None:
    explanation = explain(caller, {"agent": agent["id"]}, "bash", command=command)
    assert (explanation["effect"], explanation["source"], explanation["rule"]) == (effect, source, rule)


def test_each_rule_that_allows_a_part_of_a_command_line_is_named(caller: Caller, agent: dict[str, Any]) -> None:
    explanation = explain(caller, {"agent": agent["id"]}, "bash", command="git status -s && ls -l")
    assert explanation["effect"] == "allow"
    assert {rule["match"] for rule in explanation["rules"]} == {"bash(git status *)", "bash(ls *)"}
    assert explanation["covers"] == explanation["rules"][0]["covers"]
    assert "starts with" in explanation["covers"]
    assert explanation["commands"] == [{"path": "/command", "commands": [["git", "status", "-s"], ["ls", "-l"]], "doubt": None}]
    assert explanation["doubt"] is None


def test_a_command_line_that_cannot_be_read_with_certainty_says_why(caller: Caller, agent: dict[str, Any]) -> None:
    explanation = explain(caller, {"agent": agent["id"]}, "bash", command="ls $(cat x)")
    assert explanation["effect"] == "ask"
    assert explanation["commands"][0]["doubt"]
    explanation = explain(caller, {"agent": agent["id"], "permission_policy": {"type": "always_allow"}}, "bash", command="ls $X")
    assert (explanation["effect"], bool(explanation["doubt"])) == ("ask", True), "a rule about pushes might be met"


def test_a_proposed_policy_replaces_the_tool_s_own(caller: Caller, agent: dict[str, Any]) -> None:
    proposed = {"agent": agent["id"], "permission_policy": rules(("allow", "bash(rm *)"), default="deny")}
    assert explain(caller, proposed, "bash", command="rm x")["effect"] == "allow"
    assert explain(caller, proposed, "bash", command="ls")["rule"] == "tool bash: deny"
    assert explain(caller, proposed, "bash", command="git push")["source"] == "agent", "wider rules hold still"
    assert explain(caller, {"agent": agent["id"]}, "bash", command="rm x")["effect"] == "ask", "nothing was changed"


def test_every_kind_of_tool_is_explained_and_an_unknown_tool_is_denied(caller: Caller, agent: dict[str, Any]) -> None:
    here = {"agent": {"id": agent["id"], "version": 1}}
    assert explain(caller, here, "read", file_path="x")["rule"] == "tool read: allow"
    assert explain(caller, here, "write", file_path="x")["rule"] == "default of the agent: ask"
    assert explain(caller, here, "refund", amount=5)["rule"] == "default: allow (the client runs it)"
    unknown = explain(caller, here, "sudo")
    assert (unknown["effect"], unknown["rule"], unknown["rules"]) == ("deny", "not a tool of this agent", [])


def test_the_workspace_s_policy_counts(caller: Caller, agent: dict[str, Any]) -> None:
    good(caller.post("/v1/policy", json={"permission_policy": rules(("deny", "refund"))}))
    explanation = explain(caller, {"agent": agent["id"]}, "refund", amount=5)
    assert (explanation["effect"], explanation["source"], explanation["covers"]) == ("deny", "workspace", "every call of refund")


def test_a_session_s_grants_count_and_none_is_used_up(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    stage.reply(session, call(command="npm test"))
    decision = {"result": "allow", "scope": "session", "match": "bash(npm *)", "max_uses": 1}
    good(caller.post(f"/v1/approvals/{stage.approvals(session)[0].id}/decision", json=decision))
    before = len(stage.events(session))
    for _ in range(2):
        explanation = explain(caller, {"session_id": session}, "bash", command="npm install")
        [grant] = explanation["grants"]
        assert (explanation["effect"], explanation["source"]) == ("allow", "grant")
        assert explanation["rules"][0]["id"] == grant["id"]
        assert (grant["decides"], grant["uses"], grant["max_uses"], grant["scope"]) == (True, 0, 1, "session")
    other = explain(caller, {"session_id": session}, "bash", command="ls")
    assert (other["effect"], other["grants"][0]["decides"]) == ("ask", False)
    assert explain(caller, {"session_id": session}, "read", file_path="x")["grants"] == []
    agent_id = stage.read(session).agent_id
    assert explain(caller, {"agent": agent_id}, "bash", command="npm install")["effect"] == "ask"
    assert len(stage.events(session)) == before


def test_a_program_that_may_run_others_is_named_with_the_reason_for_the_effect(caller: Caller) -> None:
    deny = rules(("deny", "bash(rm *)"))
    tools = [TOOLSET | {"default_config": {"permission_policy": {"type": "always_allow"}}}]
    agent = caller.agent(tools=tools, permission_policy=deny)
    explanation = explain(caller, {"agent": agent["id"]}, "bash", command="ls; linux64 rm x")
    assert (explanation["effect"], explanation["source"], explanation["unknown_programs"]) == ("ask", "agent", ["linux64"])
    assert explanation["rule"] == "not sure what runs: `linux64` may run other programs; agent rule: deny bash(rm *) might be met"
    loose = caller.agent(tools=tools, permission_policy=deny | {"unknown_programs": "allow"})
    explanation = explain(caller, {"agent": loose["id"]}, "bash", command="ls; linux64 rm x")
    assert (explanation["effect"], explanation["unknown_programs"], explanation["doubt"]) == ("allow", ["linux64"], None)
    assert '"unknown_programs" is "allow" beside agent rule: deny bash(rm *)' in explanation["rule"]
    assert explain(caller, {"agent": loose["id"]}, "bash", command="ls")["unknown_programs"] == []
    good(caller.post("/v1/policy", json={"permission_policy": deny}))
    explanation = explain(caller, {"agent": loose["id"]}, "bash", command="linux64 rm x")
    assert (explanation["effect"], explanation["source"]) == ("ask", "workspace"), "the agent's policy loosens no other"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "agent"),
        ({"agent": "ID", "session_id": "sesn_1"}, "agent"),
        ({"agent": "agent_none"}, "agent"),
        ({"agent": {"id": "ID", "version": 9}}, "agent"),
        ({"agent": {"id": "ID", "version": 0}}, "agent.version"),
        ({"session_id": "sesn_none"}, "session_id"),
        ({"agent": "ID", "tool": ""}, "tool"),
        ({"agent": "ID", "input": []}, "input"),
        ({"agent": "ID", "input": {"command": "x" * 100_001}}, "input"),
        ({"agent": "ID", "permission_policy": {"type": "maybe"}}, "permission_policy.type"),
    ],
)
def test_an_invalid_request_is_refused_by_its_field(
    caller: Caller, agent: dict[str, Any], body: dict[str, Any], field: str
) -> None:
    if body.get("agent") == "ID":
        body = body | {"agent": agent["id"]}
    elif isinstance(body.get("agent"), dict):
        body = body | {"agent": body["agent"] | {"id": agent["id"]}}
    bad(caller.post("/v1/policy/explain", json={"tool": "bash", "input": {}} | body), 400, f"{field}: ")


def test_it_needs_the_scope_read(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, "admin", "agents")) as other:
        bad(other.post("/v1/policy/explain", json={"agent": "agent_1", "tool": "bash", "input": {}}), 403, "'read'")
