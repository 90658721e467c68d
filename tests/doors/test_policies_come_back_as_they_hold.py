"""Policies and ways of asking, over the wire: taken in the words people know, returned in words that every client knows."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from anthropic import Anthropic
from doors.served import MODEL, Caller, bad, good
from rows.stage import Stage

TOOLSET = {"type": "agent_toolset_20260401"}
ASK, ALLOW, DENY = ({"type": f"always_{effect}"} for effect in ("ask", "allow", "deny"))
DENIES = {"type": "auto", "rules": [], "default": "deny"}
RULES = {
    "type": "rules",
    "rules": [
        {"effect": "allow", "match": "Bash(git status:*)"},
        {"effect": "ask", "match": "read(secrets/**)", "reason": "Secrets."},
        {"effect": "deny", "match": {"tool": "refund", "input": [{"path": "/amount", "gt": 100}]}, "priority": 3},
    ],
    "default": "ask",
}
LOOSE = RULES | {"unknown_programs": "allow"}
RETURNED = {
    "type": "auto",
    "rules": [
        {"effect": "allow", "match": "bash(git status *)"},
        {"effect": "ask", "match": "read(secrets/**)", "reason": "Secrets."},
        {"effect": "deny", "match": {"tool": "refund", "input": [{"path": "/amount", "gt": 100}]}, "priority": 3},
    ],
    "default": "ask",
}


@pytest.fixture
def strict(api: str, caller: Caller) -> Iterator[Anthropic]:
    """The SDK's client: an answer that does not hold under its types raises."""
    secret = caller.headers["x-api-key"]
    with Anthropic(api_key=secret, base_url=api, max_retries=0, _strict_response_validation=True) as client:
        yield client


def custom(**more: Any) -> dict[str, Any]:
    """A client tool."""
    return {"type": "custom", "name": "refund", "description": "", "input_schema": {"type": "object"}} | more


def configs(agent: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The built-in tools of an agent with a toolset first."""
    return {config["name"]: config for config in agent["tools"][0]["configs"]}


def test_rules_come_back_in_one_spelling_wherever_they_were_sent(caller: Caller) -> None:
    toolset = TOOLSET | {
        "default_config": {"permission_policy": RULES},
        "configs": [{"name": "bash", "permission_policy": RULES}, {"name": "read", "permission_policy": DENY}],
    }
    agent = caller.agent(tools=[toolset, custom(permission_policy=RULES)], permission_policy=RULES)
    found = configs(agent)
    assert agent["permission_policy"] == RETURNED
    assert agent["tools"][0]["default_config"]["permission_policy"] == RETURNED
    assert agent["tools"][1]["permission_policy"] == RETURNED
    assert [found[name]["permission_policy"] for name in ("bash", "read", "write")] == [RETURNED, DENIES, RETURNED]
    assert [found[name]["policy_from"] for name in ("bash", "read", "write")] == ["tool", "tool", "toolset"]


def test_what_a_policy_says_of_unknown_programs_comes_back(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET | {"configs": [{"name": "bash", "permission_policy": LOOSE}]}], permission_policy=LOOSE)
    assert agent["permission_policy"] == configs(agent)["bash"]["permission_policy"] == RETURNED | {"unknown_programs": "allow"}
    plain = caller.agent(permission_policy=RULES | {"unknown_programs": "ask"})
    assert plain["permission_policy"] == RETURNED


def test_a_tool_without_a_policy_says_that_it_has_none(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET | {"configs": [{"name": "bash", "permission_policy": ASK}]}])
    found = configs(agent)
    assert {name: (c["permission_policy"], c["policy_from"]) for name, c in found.items() if name in {"bash", "read"}} == {
        "bash": (ASK, "tool"),
        "read": (ASK, "default"),
    }
    assert agent["permission_policy"] is None
    assert agent["approval"] is None


@pytest.mark.parametrize("default", [None, ASK, ALLOW, RULES])
def test_what_is_sent_back_as_it_came_changes_nothing(caller: Caller, default: dict[str, Any] | None) -> None:
    toolset = TOOLSET | {"configs": [{"name": "bash", "permission_policy": RULES, "approval": {"on_timeout": "allow"}}]}
    if default:
        toolset |= {"default_config": {"permission_policy": default}}
    agent = caller.agent(tools=[toolset], permission_policy=RULES, approval={"timeout_seconds": 60})
    back = {name: agent[name] for name in ("tools", "permission_policy", "approval")}
    assert good(caller.post(f"/v1/agents/{agent['id']}", json=back)) == agent


def test_a_policy_that_was_changed_on_the_way_back_is_the_tool_s_own(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET])
    tools = agent["tools"]
    tools[0]["configs"][0]["permission_policy"] = ALLOW
    # Whoever knows nothing of `policy_from` has written these, too, where a new toolset's policy would take their place.
    changed = good(caller.post(f"/v1/agents/{agent['id']}", json={"tools": tools}))
    assert [c["policy_from"] for c in changed["tools"][0]["configs"]] == ["tool", *["default"] * 5]
    tools[0]["default_config"]["permission_policy"] = ALLOW
    changed = good(caller.post(f"/v1/agents/{agent['id']}", json={"tools": tools}))
    assert [(c["permission_policy"], c["policy_from"]) for c in changed["tools"][0]["configs"]][:2] == [
        (ALLOW, "tool"),
        (ASK, "tool"),
    ]


def test_ways_of_asking_come_back_spelled_out(caller: Caller) -> None:
    bash = {
        "name": "bash",
        "approval": {"timeout_seconds": 60, "on_timeout": "allow", "remind_after_seconds": 30, "prompt": "Run?"},
    }
    agent = caller.agent(
        tools=[TOOLSET | {"configs": [bash]}, custom(approval={"on_timeout": "end_run"})], approval={"timeout_seconds": 600}
    )
    assert configs(agent)["bash"]["approval"] == bash["approval"]
    nothing = {"timeout_seconds": None, "remind_after_seconds": None}
    assert agent["tools"][1]["approval"] == nothing | {"on_timeout": "end_run", "prompt": None}
    assert agent["approval"] == nothing | {"timeout_seconds": 600, "on_timeout": None}


def test_the_strict_sdk_takes_every_policy_back(strict: Anthropic) -> None:
    for policy in (ASK, ALLOW, DENY, RULES, LOOSE, RULES | {"default": "deny"}, {"type": "auto", "default": "allow"}):
        toolset: Any = TOOLSET | {"default_config": {"permission_policy": policy}, "configs": [{"name": "bash"}]}
        more = {"permission_policy": policy, "approval": {"on_timeout": "end_run"}}
        agent = strict.beta.agents.create(name="A", model=MODEL, tools=[toolset, custom(permission_policy=policy)], extra_body=more)
        said: Any = agent.to_dict(mode="json")
        returned = said["tools"][0]["configs"][0]["permission_policy"]
        assert returned["type"] in {"always_allow", "always_ask", "auto"}
        assert strict.beta.agents.retrieve(agent.id).to_dict() == agent.to_dict()
        again = strict.beta.agents.update(agent.id, version=agent.version, tools=said["tools"])
        assert again.version == agent.version, "what came from the SDK and goes back by it changes nothing"


def test_a_session_s_overrides_may_hold_them(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET], permission_policy=ALLOW, approval={"timeout_seconds": 5})
    said = {"type": "agent_with_overrides", "id": agent["id"], "permission_policy": RULES, "approval": {"on_timeout": "end_run"}}
    body = {"agent": said, "environment_id": caller.environment_id()}
    session = good(caller.post("/v1/sessions", json=body))
    assert session["agent"]["permission_policy"] == RETURNED
    assert session["agent"]["approval"]["on_timeout"] == "end_run"
    cleared = good(caller.post("/v1/sessions", json=body | {"agent": said | {"permission_policy": None, "approval": None}}))
    assert (cleared["agent"]["permission_policy"], cleared["agent"]["approval"]) == (None, None)
    kept = good(caller.post("/v1/sessions", json=body | {"agent": agent["id"]}))
    assert kept["agent"]["permission_policy"] == ALLOW


@pytest.mark.parametrize(("said", "expected"), [({}, False), ({"chat_approvals": False}, False), ({"chat_approvals": True}, True)])
def test_a_session_takes_chat_words_only_if_told_so(caller: Caller, stage: Stage, said: dict[str, bool], expected: bool) -> None:
    session = caller.session(**said)
    assert session["chat_approvals"] is expected
    assert stage.read(session["id"]).chat_approvals is expected


WRONG: dict[str, tuple[Any, str]] = {
    "no object": (5, ""),
    "no type": ({}, ".type"),
    "a type that is a list": ({"type": ["always_ask"]}, ".type"),
    "an unknown type": ({"type": "maybe"}, ".type"),
    "an unknown field": ({"type": "always_ask", "rules": []}, ".rules"),
    "another word for unknown programs": ({"type": "rules", "default": "ask", "unknown_programs": "deny"}, ".unknown_programs"),
    "unknown programs that are null": ({"type": "rules", "default": "ask", "unknown_programs": None}, ".unknown_programs"),
    "no default": ({"type": "rules", "rules": []}, ".default"),
    "a default that is none": ({"type": "auto", "default": {}}, ".default"),
    "rules that are no list": ({"type": "rules", "rules": {}, "default": "ask"}, ".rules"),
    "too many rules": ({"type": "rules", "rules": [{"effect": "ask", "match": "bash"}] * 1001, "default": "ask"}, ".rules"),
}
RULE: dict[str, tuple[Any, str]] = {
    "no object": ("bash", ""),
    "no match": ({"effect": "ask"}, ".match"),
    "an unknown effect": ({"effect": "wait", "match": "bash"}, ".effect"),
    "an effect that is a list": ({"effect": [], "match": "bash"}, ".effect"),
    "a search by folder": (
        {"effect": "deny", "match": {"tool": "gr*", "input": [{"path": "/path", "path_glob": "secrets/**"}]}},
        ".match",
    ),
    "a match of nothing": ({"effect": "ask", "match": ""}, ".match"),
    "a match that is torn": ({"effect": "ask", "match": "bash(ls"}, ".match"),
    "two commands": ({"effect": "ask", "match": "bash(a; b)"}, ".match"),
    "an unknown operator": (
        {"effect": "ask", "match": {"tool": "t", "input": [{"path": "/a", "above": 1}]}},
        ".match.input.0.above",
    ),
    "no pointer": (
        {"effect": "ask", "match": {"tool": "t", "input": [{"path": "/a", "gt": 1}, {"path": "b"}]}},
        ".match.input.1.path",
    ),
    "a number that is text": ({"effect": "ask", "match": {"tool": "t", "input": [{"path": "/a", "gt": "1"}]}}, ".match.input.0.gt"),
    "a look-behind": (
        {"effect": "ask", "match": {"tool": "t", "input": [{"path": "/a", "regex": "(?<=a)b"}]}},
        ".match.input.0.regex",
    ),
    "a hash that is none": ({"effect": "ask", "match": {"tool": "t", "input_sha256": "x"}}, ".match.input_sha256"),
    "a reason that is a number": ({"effect": "ask", "match": "bash", "reason": 5}, ".reason"),
    "a priority of true": ({"effect": "ask", "match": "bash", "priority": True}, ".priority"),
    "an unknown field": ({"effect": "ask", "match": "bash", "when": "now"}, ".when"),
}
WRONG |= {
    f"rule: {name}": ({"type": "rules", "rules": [{"effect": "ask", "match": "bash"}, rule], "default": "ask"}, f".rules.1{at}")
    for name, (rule, at) in RULE.items()
}


@pytest.mark.parametrize("case", WRONG)
def test_a_policy_that_cannot_be_is_refused_with_its_field(caller: Caller, case: str) -> None:
    policy, at = WRONG[case]
    agent = {"name": "A", "model": MODEL}
    bash = TOOLSET | {"configs": [{"name": "read"}, {"name": "bash", "permission_policy": policy}]}
    places: dict[str, dict[str, Any]] = {
        "permission_policy": {"permission_policy": policy},
        "tools.0.configs.1.permission_policy": {"tools": [bash]},
        "tools.0.default_config.permission_policy": {"tools": [TOOLSET | {"default_config": {"permission_policy": policy}}]},
        "tools.0.permission_policy": {"tools": [custom(permission_policy=policy)]},
    }
    for where, more in places.items():
        said = bad(caller.post("/v1/agents", json=agent | more), 400)["message"]
        assert said.startswith(f"{where}{at}: "), said
    said = bad(caller.post("/v1/policy", json={"permission_policy": policy}), 400)["message"]
    assert said.startswith(f"permission_policy{at}: "), said


@pytest.mark.parametrize(
    ("approval", "field", "words"),
    [
        ({"on_timeout": "escalate"}, "escalate_to", "at least one level"),
        ({"on_timeout": "allow"}, "on_timeout", "tool's own approval"),
        ({"on_timeout": "later"}, "on_timeout", "deny"),
        ({"timeout_seconds": 0}, "timeout_seconds", "greater than 0"),
        ({"timeout_seconds": 367 * 86_400}, "timeout_seconds", "less than or equal to"),
        ({"remind_after_seconds": 0}, "remind_after_seconds", "greater than 0"),
        ({"remind_after_seconds": 1e12}, "remind_after_seconds", "less than or equal to"),
        ({"timeout_seconds": 60, "remind_after_seconds": 60}, "remind_after_seconds", "less than timeout_seconds"),
        ({"prompt": "Run?"}, "prompt", "leave it out"),
    ],
)
def test_a_way_of_asking_that_cannot_be_is_refused(caller: Caller, approval: dict[str, Any], field: str, words: str) -> None:
    agent = {"name": "A", "model": MODEL}
    bad(caller.post("/v1/agents", json=agent | {"approval": approval}), 400, f"approval.{field}: ", words)
    bad(caller.post("/v1/policy", json={"approval": approval}), 400, f"approval.{field}: ", words)
    tools = [TOOLSET | {"configs": [{"name": "bash", "approval": approval}]}]
    if approval.get("on_timeout") != "allow" and "prompt" not in approval:
        bad(caller.post("/v1/agents", json=agent | {"tools": tools}), 400, f"tools.0.configs.0.approval.{field}: ", words)
    else:
        good(caller.post("/v1/agents", json=agent | {"tools": tools}))


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1"])
def test_a_schema_s_pattern_for_another_engine_is_refused_by_name(caller: Caller, pattern: str) -> None:
    for schema in ({"properties": {"a": {"type": "string", "pattern": pattern}}}, {"patternProperties": {pattern: {}}}):
        tool = custom(input_schema={"type": "object"} | schema)
        answer = caller.post("/v1/agents", json={"name": "A", "model": MODEL, "tools": [tool]})
        bad(answer, 400, "tools.0.input_schema: ", repr(pattern))


def test_a_policy_says_whose_it_is_only_beside_itself(caller: Caller) -> None:
    tools = [TOOLSET | {"configs": [{"name": "bash", "policy_from": "tool"}]}]
    bad(caller.post("/v1/agents", json={"name": "A", "model": MODEL, "tools": tools}), 400, "tools.0.configs.0.policy_from: ")


def test_others_are_answered_while_a_policy_of_many_expressions_is_read(caller: Caller) -> None:
    worst = [f"(?:[a-z]{{1,30}}[0-9]{{1,30}}){{1,20}}{n}" for n in range(150)]
    rules = [{"effect": "deny", "match": {"tool": "t", "input": [{"path": "/a", "regex": regex}]}} for regex in worst]
    body = {"permission_policy": {"type": "rules", "rules": rules, "default": "ask"}}
    posting = threading.Thread(target=lambda: good(caller.post("/v1/policy", json=body)))
    posting.start()
    answered = 0
    with httpx.Client(base_url=str(caller.base_url), timeout=60) as other:
        while posting.is_alive():
            answered += other.get("/healthz").status_code == 200
    assert answered > 10, "a server that compiles without pauses answers one request before and one after"
