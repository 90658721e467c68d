"""Policies and settings of approvals are accepted in several spellings, and returned in one that every SDK client can read."""

import threading
from typing import Any

import httpx2
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


def custom(**more: Any) -> dict[str, Any]:
    """Return a client tool."""
    return {"type": "custom", "name": "refund", "description": "", "input_schema": {"type": "object"}} | more


def configs(agent: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the configs of an agent's first toolset by tool name."""
    return {config["name"]: config for config in agent["tools"][0]["configs"]}


def test_rules_come_back_in_one_spelling_wherever_they_were_sent(caller: Caller) -> None:
    toolset = TOOLSET | {
        "default_config": {"permission_policy": RULES},
        "configs": [{"name": "bash", "permission_policy": RULES}, {"name": "read", "permission_policy": DENY}],
    }
    agent = caller.agent(tools=[toolset, custom(permission_policy=RULES)], permission_policy=RULES)
    by_name = configs(agent)
    assert agent["permission_policy"] == RETURNED
    assert agent["tools"][0]["default_config"]["permission_policy"] == RETURNED
    assert agent["tools"][1]["permission_policy"] == RETURNED
    assert [by_name[name]["permission_policy"] for name in ("bash", "read", "write")] == [RETURNED, DENIES, RETURNED]
    assert [by_name[name]["policy_from"] for name in ("bash", "read", "write")] == ["tool", "tool", "toolset"]


def test_unknown_programs_comes_back_unless_it_is_the_default(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET | {"configs": [{"name": "bash", "permission_policy": LOOSE}]}], permission_policy=LOOSE)
    assert agent["permission_policy"] == configs(agent)["bash"]["permission_policy"] == RETURNED | {"unknown_programs": "allow"}
    plain = caller.agent(permission_policy=RULES | {"unknown_programs": "ask"})
    assert plain["permission_policy"] == RETURNED


def test_policy_from_says_that_a_tool_has_no_policy_of_its_own(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET | {"configs": [{"name": "bash", "permission_policy": ASK}]}])
    bash, read = (configs(agent)[name] for name in ("bash", "read"))
    assert (bash["permission_policy"], bash["policy_from"]) == (ASK, "tool")
    assert (read["permission_policy"], read["policy_from"]) == (ASK, "default")
    assert agent["permission_policy"] is None
    assert agent["approval"] is None


@pytest.mark.parametrize("default", [None, ASK, ALLOW, RULES])
def test_an_update_with_the_returned_values_changes_nothing(caller: Caller, default: dict[str, Any] | None) -> None:
    toolset = TOOLSET | {"configs": [{"name": "bash", "permission_policy": RULES, "approval": {"on_timeout": "allow"}}]}
    if default:
        toolset |= {"default_config": {"permission_policy": default}}
    agent = caller.agent(tools=[toolset], permission_policy=RULES, approval={"timeout_seconds": 60})
    back = {name: agent[name] for name in ("tools", "permission_policy", "approval")}
    assert good(caller.post(f"/v1/agents/{agent['id']}", json=back)) == agent


def test_a_policy_that_was_changed_before_it_is_sent_back_becomes_the_tool_s_own(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET])
    tools = agent["tools"]
    tools[0]["configs"][0]["permission_policy"] = ALLOW
    # A client that does not know `policy_from` sets a tool's policy also where a changed default of the toolset would replace it.
    changed = good(caller.post(f"/v1/agents/{agent['id']}", json={"tools": tools}))
    assert [c["policy_from"] for c in changed["tools"][0]["configs"]] == ["tool", *["default"] * 5]
    tools[0]["default_config"]["permission_policy"] = ALLOW
    changed = good(caller.post(f"/v1/agents/{agent['id']}", json={"tools": tools}))
    assert [(c["permission_policy"], c["policy_from"]) for c in changed["tools"][0]["configs"]][:2] == [
        (ALLOW, "tool"),
        (ASK, "tool"),
    ]


def test_settings_of_approvals_come_back_with_all_fields(caller: Caller) -> None:
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


def test_the_strict_sdk_reads_every_policy_and_sends_it_back_unchanged(strict: Anthropic) -> None:
    for policy in (ASK, ALLOW, DENY, RULES, LOOSE, RULES | {"default": "deny"}, {"type": "auto", "default": "allow"}):
        toolset: Any = TOOLSET | {"default_config": {"permission_policy": policy}, "configs": [{"name": "bash"}]}
        more = {"permission_policy": policy, "approval": {"on_timeout": "end_run"}}
        agent = strict.beta.agents.create(name="A", model=MODEL, tools=[toolset, custom(permission_policy=policy)], extra_body=more)
        tools: Any = agent.to_dict(mode="json")["tools"]
        assert tools[0]["configs"][0]["permission_policy"]["type"] in {"always_allow", "always_ask", "auto"}
        assert strict.beta.agents.retrieve(agent.id).to_dict() == agent.to_dict()
        assert strict.beta.agents.update(agent.id, version=agent.version, tools=tools).version == agent.version


def test_a_session_can_override_policy_and_approval(caller: Caller) -> None:
    agent = caller.agent(tools=[TOOLSET], permission_policy=ALLOW, approval={"timeout_seconds": 5})
    reference = {
        "type": "agent_with_overrides",
        "id": agent["id"],
        "permission_policy": RULES,
        "approval": {"on_timeout": "end_run"},
    }
    body = {"agent": reference, "environment_id": caller.environment_id()}
    session = good(caller.post("/v1/sessions", json=body))
    assert session["agent"]["permission_policy"] == RETURNED
    assert session["agent"]["approval"]["on_timeout"] == "end_run"
    cleared = good(caller.post("/v1/sessions", json=body | {"agent": reference | {"permission_policy": None, "approval": None}}))
    assert (cleared["agent"]["permission_policy"], cleared["agent"]["approval"]) == (None, None)
    plain = good(caller.post("/v1/sessions", json=body | {"agent": agent["id"]}))
    assert plain["agent"]["permission_policy"] == ALLOW


@pytest.mark.parametrize(
    ("of_agent", "of_session", "expected"),
    [(None, None, False), (None, True, True), (False, True, True), (True, None, True), (True, False, False)],
)
def test_chat_words_decide_only_in_a_session_that_says_so_or_of_an_agent_that_does(
    caller: Caller, stage: Stage, of_agent: bool | None, of_session: bool | None, expected: bool
) -> None:
    agent = caller.agent() if of_agent is None else caller.agent(chat_approvals=of_agent)
    assert agent["chat_approvals"] is bool(of_agent)
    session = caller.session(agent) if of_session is None else caller.session(agent, chat_approvals=of_session)
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
    "a default that is an object": ({"type": "auto", "default": {}}, ".default"),
    "rules that are not a list": ({"type": "rules", "rules": {}, "default": "ask"}, ".rules"),
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
    "an empty match": ({"effect": "ask", "match": ""}, ".match"),
    "a match without its end": ({"effect": "ask", "match": "bash(ls"}, ".match"),
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
    "a malformed hash": ({"effect": "ask", "match": {"tool": "t", "input_sha256": "x"}}, ".match.input_sha256"),
    "a reason that is a number": ({"effect": "ask", "match": "bash", "reason": 5}, ".reason"),
    "a priority of true": ({"effect": "ask", "match": "bash", "priority": True}, ".priority"),
    "an unknown field": ({"effect": "ask", "match": "bash", "when": "now"}, ".when"),
}
WRONG |= {
    f"rule: {name}": ({"type": "rules", "rules": [{"effect": "ask", "match": "bash"}, rule], "default": "ask"}, f".rules.1{at}")
    for name, (rule, at) in RULE.items()
}


def test_an_invalid_policy_is_refused_by_its_field(caller: Caller, subtests: pytest.Subtests) -> None:
    for case, (policy, at) in WRONG.items():
        with subtests.test(case):
            refused(caller, policy, at)


def refused(caller: Caller, policy: Any, at: str) -> None:
    """Assert that no place of an agent takes the policy, and that the message names the place and the field `at` in it."""
    agent = {"name": "A", "model": MODEL}
    bash = TOOLSET | {"configs": [{"name": "read"}, {"name": "bash", "permission_policy": policy}]}
    places: dict[str, dict[str, Any]] = {
        "permission_policy": {"permission_policy": policy},
        "tools.0.configs.1.permission_policy": {"tools": [bash]},
        "tools.0.default_config.permission_policy": {"tools": [TOOLSET | {"default_config": {"permission_policy": policy}}]},
        "tools.0.permission_policy": {"tools": [custom(permission_policy=policy)]},
    }
    for where, more in places.items():
        text = bad(caller.post("/v1/agents", json=agent | more), 400)["message"]
        assert text.startswith(f"{where}{at}: "), text
    text = bad(caller.post("/v1/policy", json={"permission_policy": policy}), 400)["message"]
    assert text.startswith(f"permission_policy{at}: "), text


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
def test_invalid_settings_of_approvals_are_refused_by_their_field(
    caller: Caller, approval: dict[str, Any], field: str, words: str
) -> None:
    agent = {"name": "A", "model": MODEL}
    bad(caller.post("/v1/agents", json=agent | {"approval": approval}), 400, f"approval.{field}: ", words)
    bad(caller.post("/v1/policy", json={"approval": approval}), 400, f"approval.{field}: ", words)
    tools = [TOOLSET | {"configs": [{"name": "bash", "approval": approval}]}]
    if approval.get("on_timeout") != "allow" and "prompt" not in approval:
        bad(caller.post("/v1/agents", json=agent | {"tools": tools}), 400, f"tools.0.configs.0.approval.{field}: ", words)
    else:
        good(caller.post("/v1/agents", json=agent | {"tools": tools}))


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1"])
def test_a_schema_s_pattern_that_needs_another_engine_is_refused_by_name(caller: Caller, pattern: str) -> None:
    for schema in ({"properties": {"a": {"type": "string", "pattern": pattern}}}, {"patternProperties": {pattern: {}}}):
        tool = custom(input_schema={"type": "object"} | schema)
        answer = caller.post("/v1/agents", json={"name": "A", "model": MODEL, "tools": [tool]})
        bad(answer, 400, "tools.0.input_schema: ", repr(pattern))


def test_policy_from_without_a_policy_is_refused(caller: Caller) -> None:
    tools = [TOOLSET | {"configs": [{"name": "bash", "policy_from": "tool"}]}]
    bad(caller.post("/v1/agents", json={"name": "A", "model": MODEL, "tools": tools}), 400, "tools.0.configs.0.policy_from: ")


def test_others_are_answered_while_a_policy_with_many_expressions_is_checked(caller: Caller) -> None:
    worst = [f"(?:[a-z]{{1,30}}[0-9]{{1,30}}){{1,20}}{n}" for n in range(150)]
    rules = [{"effect": "deny", "match": {"tool": "t", "input": [{"path": "/a", "regex": regex}]}} for regex in worst]
    body = {"permission_policy": {"type": "rules", "rules": rules, "default": "ask"}}
    posting = threading.Thread(target=lambda: good(caller.post("/v1/policy", json=body)))
    posting.start()
    answered = 0
    with httpx2.Client(base_url=str(caller.base_url), timeout=60) as other:
        while posting.is_alive():
            answered += other.get("/healthz").status_code == 200
    assert answered > 10, "a server that compiles without pauses answers one request before and one after"
