"""What a thread's agent may do is narrowed by the agent of the thread that began it, and never widened."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.session_policies import SessionPolicies
from models.pure.naming import full_name
from models.pure.policy import CompiledRules, Granted, Rule, Verdict, grant, policy_of
from models.pure.policy.rules import EFFECTS
from models.pure.policy.wire import NEVER
from models.workspace.toolset import ToolListing

NOTHING: dict[str, Any] = {"policy": None, "approval": None}
TOOLS = ("bash", "read", "refund", "mcp__shop__refund")
LISTINGS = {"shop": ToolListing("https://shop.example", "1", ({"name": "refund", "description": "", "input_schema": {}},))}
COMMANDS = ["ls", "git push", "ls | grep x", "ls; rm x", "echo $X", "xargs rm", "make x", "rm x", "ls 'x"]
CALLS = st.one_of(
    st.tuples(st.just("bash"), st.fixed_dictionaries({"command": st.sampled_from(COMMANDS)})),
    st.tuples(st.just("read"), st.fixed_dictionaries({"file_path": st.sampled_from(["src/a", "/etc/x", ".git/config"])})),
    st.tuples(st.sampled_from(["refund", "mcp__shop__refund"]), st.fixed_dictionaries({"amount": st.sampled_from([1, 100, "x"])})),
)
MATCHES = [
    "bash",
    "bash(ls *)",
    "bash(rm *)",
    "bash(git *)",
    "bash(make *)",
    "bash(*)",
    "*",
    "read(src/**)",
    "read",
    "mcp__shop__*",
]
RULES = st.fixed_dictionaries(
    {
        "effect": st.sampled_from(EFFECTS),
        "match": st.sampled_from(MATCHES)
        | st.just({"tool": "*refund", "input": [{"path": "/amount", "gt": 50}]})
        | st.just({"tool": "refund", "input": [{"path": "/amount", "lte": 50}]}),
    }
)
POLICIES = st.none() | st.one_of(
    st.sampled_from([{"type": f"always_{effect}"} for effect in EFFECTS]),
    st.fixed_dictionaries(
        {"type": st.just("rules"), "rules": st.lists(RULES, max_size=3), "default": st.sampled_from(EFFECTS)},
        optional={"unknown_programs": st.sampled_from(["ask", "allow"])},
    ),
)
GRANTS = st.lists(
    st.tuples(st.sampled_from(TOOLS), st.sampled_from(["tool", "bash(ls *)", "bash(make *)"])).map(
        lambda pair: grant(pair[0], pair[1] if pair[0] == "bash" else "tool", "", id="grnt_1")
    ),
    max_size=2,
)


HAS = st.booleans()


@st.composite
def agents(draw: Any, has: Any = HAS) -> dict[str, Any]:
    """A random agent: some of TOOLS, with policies at every level."""
    configs = [
        {"type": name, "name": name, "enabled": draw(has), "permission_policy": draw(POLICIES)}
        | {"policy_from": draw(st.sampled_from(["tool", "toolset", "default"]))}
        for name in ("bash", "read")
    ]
    toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": True}, "configs": configs}
    tools: list[dict[str, Any]] = [toolset]
    if draw(has):
        tools.append({"type": "custom", "name": "refund", "permission_policy": draw(POLICIES)})
    config = {"name": "refund", "enabled": draw(has), "permission_policy": draw(POLICIES), "policy_from": "tool"}
    default = {
        "enabled": draw(has),
        "permission_policy": draw(POLICIES),
        "policy_from": draw(st.sampled_from(["toolset", "default"])),
    }
    if draw(has):
        shop = {"type": "mcp_toolset", "mcp_server_name": "shop", "default_config": default}
        tools.append(shop | {"configs": [config] if draw(st.booleans()) else []})
    return {"permission_policy": draw(POLICIES), "approval": None, "tools": tools}


BARE = agents(has=st.just(False))
"""Agents without any tool."""


def compiled(agent: dict[str, Any], parent: SessionPolicies | None = None, default: Any = "ask") -> SessionPolicies:
    """The policies of an agent, below its parent's."""
    return SessionPolicies(agent, NOTHING, default, LISTINGS, parent)


def verdict(policies: SessionPolicies, call: tuple[str, dict[str, Any]], grants: list[Rule]) -> Verdict:
    """The policies' verdict on a call."""
    return policies.judge(*call, Granted(tuple(grants), None))


def strict_rules(agent: dict[str, Any], tool: str) -> list[Rule]:
    """The rules that deny or ask, of the agent and of this tool's own configuration."""
    configs = [(entry.get("mcp_server_name"), config) for entry in agent["tools"] for config in entry.get("configs", [entry])]
    of_tool = [config for server, config in configs if tool == (full_name(server, config["name"]) if server else config["name"])]
    named = [config for config in of_tool if config.get("policy_from", "tool") == "tool"]
    rules = [rule for policy in [agent["permission_policy"]] if policy for rule in policy_of(policy).rules if rule.id != NEVER]
    rules += [
        rule for config in named if config["permission_policy"] for rule in policy_of(config["permission_policy"], tool=tool).rules
    ]
    return [rule for rule in rules if rule.effect != "allow"]


@given(agents(), agents(), CALLS, GRANTS)
def test_no_parent_loosens_a_verdict(child: Any, parent: Any, call: tuple[str, dict[str, Any]], grants: list[Rule]) -> None:
    alone = verdict(compiled(child), call, grants)
    assert verdict(compiled(child, compiled(parent)), call, grants).strictness >= alone.strictness


@given(agents(), agents(), CALLS, GRANTS)
def test_a_thread_may_not_what_its_parent_may_not(
    child: Any, parent: Any, call: tuple[str, dict[str, Any]], grants: list[Rule]
) -> None:
    """With a tool that the parent has, all that the parent says of it counts."""
    above = compiled(parent)
    if above.has(call[0]):
        parents = verdict(above, call, grants)
        assert verdict(compiled(child, above), call, grants).strictness >= parents.strictness


@given(agents(), agents(), CALLS, GRANTS)
def test_each_rule_of_the_parent_that_denies_or_asks_holds(
    child: Any, parent: Any, call: tuple[str, dict[str, Any]], grants: list[Rule]
) -> None:
    """Whether or not the parent has the tool itself."""
    result = verdict(compiled(child, compiled(parent)), call, grants)
    for rule in strict_rules(parent, call[0]):
        if CompiledRules([rule], "allow").judge(*call).rules:
            alone = CompiledRules([rule], "allow").judge(*call)
            assert result.strictness >= alone.strictness


@given(agents(), BARE, CALLS, GRANTS, st.sampled_from(EFFECTS))
def test_what_a_parent_without_the_tool_allows_or_defaults_to_is_nothing(
    child: Any, parent: Any, call: tuple[str, dict[str, Any]], grants: list[Rule], default: Any
) -> None:
    strict = [rule for rule in (parent["permission_policy"] or {}).get("rules", ()) if rule["effect"] != "allow"]
    marks = {key: value for key, value in (parent["permission_policy"] or {}).items() if key == "unknown_programs"}
    other = parent | {"permission_policy": {"type": "rules", "rules": strict, "default": default, **marks} if strict else None}
    assert verdict(compiled(child, compiled(parent)), call, grants) == verdict(compiled(child, compiled(other)), call, grants)


@given(agents(), BARE, CALLS, GRANTS)
def test_a_parent_that_says_nothing_of_a_tool_changes_no_verdict(
    child: Any, parent: Any, call: tuple[str, dict[str, Any]], grants: list[Rule]
) -> None:
    silent = {"permission_policy": None, "tools": []} if strict_rules(parent, call[0]) else parent
    assert verdict(compiled(child, compiled(silent)), call, grants) == verdict(compiled(child), call, grants)


@given(agents(), CALLS, GRANTS)
def test_a_parent_with_the_same_agent_changes_no_effect(agent: Any, call: tuple[str, dict[str, Any]], grants: list[Rule]) -> None:
    """An agent that begins a thread of itself."""
    same = verdict(compiled(agent, compiled(agent)), call, grants)
    assert same.strictness == verdict(compiled(agent), call, grants).strictness


@given(agents(), agents(), agents(), CALLS, GRANTS)
def test_a_longer_path_only_narrows(
    child: Any, parent: Any, root: Any, call: tuple[str, dict[str, Any]], grants: list[Rule]
) -> None:
    short = verdict(compiled(child, compiled(parent)), call, grants)
    assert verdict(compiled(child, compiled(parent, compiled(root))), call, grants).strictness >= short.strictness


@given(agents(), agents(), CALLS)
def test_what_is_never_offered_or_never_asked_holds_for_every_call(
    child: Any, parent: Any, call: tuple[str, dict[str, Any]]
) -> None:
    policies = compiled(child, compiled(parent))
    if not policies.has(call[0]):
        return
    result = policies.judge(*call)
    if policies.is_always_denied(call[0]):
        assert result.effect == "deny"
    if not policies.asks(call[0]) and result.effect == "ask":
        assert "always asked" in result.rule, "a git directory is guarded, whatever the policies are"


def ruled(*rules: tuple[str, str], default: str = "allow") -> dict[str, Any]:
    """A policy of these rules."""
    return {"type": "rules", "rules": [{"effect": effect, "match": match} for effect, match in rules], "default": default}


def agent_with(policy: Any, bash: Any = None, *, enabled: bool = True, policy_from: str = "tool") -> dict[str, Any]:
    """An agent with bash, and a policy of its own."""
    policy_from = policy_from if bash else "default"
    config = {"name": "bash", "type": "bash", "enabled": enabled, "permission_policy": bash, "policy_from": policy_from}
    toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": True}, "configs": [config]}
    return {"permission_policy": policy, "tools": [toolset]}


FREE = agent_with(None, {"type": "always_allow"})


@pytest.mark.parametrize(
    ("parent", "command", "effect", "rule"),
    [
        (agent_with(ruled(("deny", "bash(rm *)")), enabled=False), "rm x", "deny", "parent rule: deny bash(rm *)"),
        (agent_with(ruled(("ask", "bash(git push *)")), enabled=False), "git push", "ask", "parent rule: ask bash(git push *)"),
        (agent_with(ruled(default="ask")), "ls", "ask", "parent: default of the agent: ask"),
        (agent_with(None, {"type": "always_ask"}), "ls", "ask", "parent: tool bash: ask"),
        (agent_with({"type": "always_deny"}, enabled=False), "ls", "allow", "tool bash: allow"),
        (agent_with(None, {"type": "always_deny"}, enabled=False), "ls", "deny", "parent rule: deny bash"),
        (agent_with(None, {"type": "always_deny"}, enabled=False, policy_from="toolset"), "ls", "allow", "tool bash: allow"),
    ],
)
def test_the_verdict_names_what_the_parent_says(parent: dict[str, Any], command: str, effect: str, rule: str) -> None:
    result = compiled(FREE, compiled(parent)).judge("bash", {"command": command})
    assert (result.effect, result.rule) == (effect, rule)


def test_a_parent_s_rule_about_commands_makes_uncertain_lines_ask() -> None:
    parent = compiled(agent_with(ruled(("deny", "bash(rm *)")), enabled=False, policy_from="default"))
    for command in ("echo $X; $Y", "make x"):
        assert compiled(FREE).judge("bash", {"command": command}).effect == "allow"
        assert compiled(FREE, parent).judge("bash", {"command": command}).effect == "ask"
    named = agent_with(None, ruled(("allow", "bash(make *)"), default="allow"))
    assert compiled(named, parent).judge("bash", {"command": "make x"}).effect == "allow", "as if it were the agent's own rule"


def test_a_grant_answers_the_question_of_both_defaults_and_is_used_once() -> None:
    asking = agent_with(None, {"type": "always_ask"})
    permitted = grant("bash", "tool", "", id="grnt_1")
    for child in (FREE, asking):
        result = compiled(child, compiled(asking)).judge("bash", {"command": "ls"}, Granted((permitted,), None))
        assert (result.effect, [rule.id for rule in result.rules]) == ("allow", ["grnt_1"])
    always = compiled(agent_with(ruled(("ask", "bash"), default="allow")))
    assert compiled(asking, always).judge("bash", {"command": "ls"}, Granted((permitted,), None)).effect == "ask"


def test_a_tool_of_a_server_whose_tools_are_unknown_is_the_parent_s_as_well() -> None:
    default = {"enabled": True, "permission_policy": {"type": "always_allow"}, "policy_from": "toolset"}
    shop = {"type": "mcp_toolset", "mcp_server_name": "shop", "default_config": default, "configs": []}
    asking = shop | {"default_config": default | {"permission_policy": {"type": "always_ask"}}}
    parent = SessionPolicies({"tools": [asking]}, NOTHING, "ask", {})
    child = SessionPolicies({"tools": [shop]}, NOTHING, "ask", LISTINGS, parent)
    assert child.judge("mcp__shop__refund", {}).effect == "ask"
