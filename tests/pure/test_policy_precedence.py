"""Deny wins over ask, ask over allow, and allow over the default, for any rules in any order."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.json.canonical import digest
from models.pure.policy import CompiledRules, Condition, Match, Rule, grant, match_of, policy_of
from models.pure.shell import read

COMMANDS = [
    "ls",
    "ls -la",
    "git status",
    "git push",
    "ls | grep x",
    "ls; rm x",
    "echo $X",
    "xargs rm",
    "ls > x",
    "ls 'x",
    "make x",
    "linux64 rm x",
    "",
]
CALLS = st.one_of(
    st.tuples(st.just("bash"), st.fixed_dictionaries({"command": st.sampled_from(COMMANDS)})),
    st.tuples(st.just("refund"), st.fixed_dictionaries({"amount": st.sampled_from([1, 100.0, "100", None, True, [1]])})),
    st.tuples(st.just("read"), st.fixed_dictionaries({"file_path": st.sampled_from(["src/a", "src/../x", "/etc/x", ".env"])})),
)
MATCHES = st.sampled_from(
    [
        match_of(text)
        for text in [
            "bash",
            "bash(ls *)",
            "bash(rm *)",
            "bash(git *)",
            "bash(grep *)",
            "bash(make *)",
            "bash(*)",
            "*",
            "read(src/**)",
            "read",
        ]
    ]
    + [
        Match("refund", (Condition("/amount", op, value),))
        for op, value in [("gt", 50), ("lte", 50), ("equals", 1), ("exists", False)]
    ]
    + [Match("bash", (Condition("/command", "glob", "ls*"),)), Match("bash", input_sha256=digest({"command": "echo $X"}))]
)
RULES = st.builds(
    Rule,
    st.sampled_from(["allow", "ask", "deny"]),
    MATCHES,
    st.none() | st.just("Because."),
    st.integers(-2, 2),
    st.sampled_from(["workspace", "agent", "tool"]),
    st.sampled_from(["", "a", "b"]),
    st.booleans(),
) | st.builds(Rule, st.just("allow"), MATCHES, source=st.just("grant"), id=st.sampled_from(["grnt_1", "grnt_2"]))
DEFAULTS = st.sampled_from(["allow", "ask", "deny"])
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def effect(rules: list[Rule], default: Any, call: tuple[str, dict[str, Any]]) -> str:
    """The rules' effect for a call."""
    return CompiledRules(rules, default).judge(*call).effect


@given(st.lists(RULES, max_size=6), RULES, DEFAULTS, CALLS)
def test_a_rule_that_denies_is_final(rules: list[Rule], other: Rule, default: Any, call: tuple[str, dict[str, Any]]) -> None:
    """A rule that denies alone also denies among others, and no added rule changes a denial by a rule."""
    denial = Rule("deny", other.match)
    if CompiledRules([denial], "allow").judge(*call).rules and effect([denial], "allow", call) == "deny":
        assert effect([*rules, denial], default, call) == "deny"
    before = CompiledRules(rules, default).judge(*call)
    if before.effect == "deny" and before.rules:
        assert effect([*rules, other], default, call) == "deny"


@given(st.lists(RULES, max_size=6), RULES, DEFAULTS, CALLS)
def test_a_rule_that_does_not_allow_never_loosens(
    rules: list[Rule], other: Rule, default: Any, call: tuple[str, dict[str, Any]]
) -> None:
    """And a rule that allows never tightens."""
    before, after = effect(rules, default, call), effect([*rules, other], default, call)
    if other.effect == "allow":
        assert STRICTNESS[after] <= STRICTNESS[before]
    else:
        assert STRICTNESS[after] >= min(STRICTNESS[before], STRICTNESS[other.effect])
        assert (before, after) != ("deny", "allow")
        assert (before, after) != ("ask", "allow")


@given(st.lists(RULES, max_size=6), st.randoms(), DEFAULTS, CALLS)
def test_the_order_of_rules_does_not_matter(rules: list[Rule], random: Any, default: Any, call: tuple[str, dict[str, Any]]) -> None:
    """Effect, text and named rules are the same."""
    turned = random.sample(rules, len(rules))
    assert CompiledRules(turned, default).judge(*call) == CompiledRules(rules, default).judge(*call)


@given(st.lists(RULES, max_size=6), DEFAULTS, CALLS)
def test_grants_can_be_added_later(rules: list[Rule], default: Any, call: tuple[str, dict[str, Any]]) -> None:
    """With the same verdict as if they were compiled with the rules."""
    written = [rule for rule in rules if rule.source != "grant"]
    granted = [rule for rule in rules if rule.source == "grant"]
    assert CompiledRules(written, default).with_grants(granted).judge(*call) == CompiledRules(rules, default).judge(*call)


@given(
    st.lists(RULES.map(lambda rule: replace(rule, effect="allow")), max_size=6),
    st.sampled_from([command for command in COMMANDS if command and read(command).doubt]),
)
def test_no_pattern_allows_a_line_that_is_not_read_with_certainty(rules: list[Rule], command: str) -> None:
    """Only a rule for the whole tool or for this exact input does."""
    verdict = CompiledRules(rules, "ask").judge("bash", {"command": command})
    assert verdict.effect == "ask" or (verdict.rules and all(not rule.match.conditions for rule in verdict.rules))


def test_deny_wins_over_ask_over_allow_over_the_default() -> None:
    allow, ask, deny = (Rule(e, match_of("bash(git push *)")) for e in ("allow", "ask", "deny"))  # type: ignore[arg-type]
    call = ("bash", {"command": "git push"})
    assert effect([allow, ask, deny], "ask", call) == "deny"
    assert effect([allow, ask], "ask", call) == "ask"
    assert effect([allow], "deny", call) == "allow"
    assert effect([], "deny", call) == "deny"


def test_a_grant_allows_only_calls_that_the_default_asks_about() -> None:
    """And is not used if a rule decides, or if the default allows or denies."""
    given = grant("bash", "tool", "", id="grnt_1")
    call = ("bash", {"command": "git push"})
    always_ask = policy_of({"type": "always_ask"})
    released = CompiledRules([*always_ask.rules, given], always_ask.default).judge(*call)
    assert (released.effect, released.rules, released.rule) == ("allow", (given,), "grant grnt_1: allow bash")
    for text in ("bash", "bash(git push *)"):
        assert effect([given, Rule("ask", match_of(text))], "ask", call) == "ask"
        assert effect([given, Rule("deny", match_of(text))], "ask", call) == "deny"
    never = policy_of({"type": "always_deny"}, tool="bash")
    assert effect([*never.rules, given, Rule("allow", match_of("bash"), source="workspace")], "ask", call) == "deny"
    assert effect([given], "deny", call) == "deny"
    written = Rule("allow", match_of("bash(git *)"), priority=-5)
    assert CompiledRules([given, written], "ask").judge(*call).rules == (written,)
    assert CompiledRules([given], "allow").judge(*call).rules == ()


def test_rules_and_grants_allow_a_line_together_and_each_grant_is_used() -> None:
    """The first that covers a command counts. A line is allowed only if all of its commands are."""
    ls = Rule("allow", match_of("bash(ls *)"))
    grep = grant("bash", "bash(grep *)", "", id="grnt_1")
    book = CompiledRules([grep, ls], "ask")
    assert book.judge("bash", {"command": "ls | grep x; ls -l"}).rules == (ls, grep)
    assert book.judge("bash", {"command": "ls | grep x | wc"}).effect == "ask"


def test_priority_selects_the_named_rule_and_never_the_effect() -> None:
    low, high = (Rule("deny", match_of("bash(rm *)"), reason=f"{n}.", priority=n) for n in (-9, 9))
    loud = Rule("allow", match_of("bash"), priority=1_000)
    verdict = CompiledRules([low, loud, high], "allow").judge("bash", {"command": "rm x"})
    assert (verdict.effect, verdict.rules, verdict.rule) == ("deny", (high,), "agent rule: deny bash(rm *) (9.)")


@pytest.mark.parametrize("tool", ["bash", "mcp__github__push", "anything"])
def test_a_tool_without_rules_gets_the_default(tool: str) -> None:
    verdict = CompiledRules([Rule("deny", match_of("read")), Rule("deny", match_of("mcp__gitlab__*"))], "ask").judge(tool, {})
    assert (verdict.effect, verdict.rule, verdict.rules) == ("ask", "default: ask", ())


EXPRESSIONS = st.sampled_from(
    ["a+", "^a", "b$", "(?i)AB", "x|y", "", r"\Qa", r"\Qb|", "[ab]{2}", ".*", "a.b", r"\bab\b", "(a|b)c?"]
)


@given(st.lists(EXPRESSIONS, min_size=2, max_size=40), st.sampled_from(["allow", "deny", "ask"]), st.text("abcxy \nAB", max_size=8))
def test_many_expressions_together_decide_as_each_alone(expressions: list[str], effect_: Any, text: str) -> None:
    rules = [
        Rule(effect_, Match("t", (Condition("/x", "regex", one),)), id=str(n), source="grant" if effect_ == "allow" else "agent")
        for n, one in enumerate(expressions)
    ]
    alone = [CompiledRules([rule], "ask").judge("t", {"x": text}) for rule in rules]
    hits = [verdict.rules[0] for verdict in alone if verdict.rules]
    together = CompiledRules(rules, "ask").judge("t", {"x": text})
    assert bool(together.rules) == bool(hits)
    assert set(together.rules) <= set(hits)
