"""Rules as texts and JSON: which are accepted, how others are refused, and that writing inverts reading."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.pure.policy import (
    Condition,
    Match,
    Policy,
    Rule,
    covers,
    grant,
    match_of,
    policy_as_json,
    policy_of,
    rule_as_json,
    rule_of,
)


def command(pattern: str, tool: str = "bash", path: str = "/command") -> Match:
    """A pattern of commands."""
    return Match(tool, (Condition(path, "command", pattern),))


def file(tool: str, pattern: str, path: str = "/file_path") -> Match:
    """A pattern of paths."""
    return Match(tool, (Condition(path, "path_glob", pattern),))


TEXTS: dict[str, Match] = {
    "bash": Match("bash"),
    "Bash": Match("bash"),
    " Grep ": Match("grep"),
    "BASH": Match("BASH"),
    "*": Match("*"),
    "bash(git push *)": command("git push *"),
    "Bash(npm run test:*)": command("npm run test *"),
    "bash(echo 'a (b)' *)": command("echo 'a (b)' *"),
    "bash(*)": command("*"),
    "mcp__github__create_issue": Match("mcp__github__create_issue"),
    "mcp__github__*": Match("mcp__github__*"),
    "mcp__github": Match("mcp__github__*"),
    "mcp:github:*": Match("mcp__github__*"),
    "read(src/**)": file("read", "src/**"),
    "Edit(./src//a/)": file("edit", "src/a/**"),
    "Read(*)": Match("read"),
    "glob(src/**)": file("glob", "src/**", "/path"),
    "shell:cmd=ls*": command("ls*", "shell", "/cmd"),
    "shell:cmd=ls *:cwd=src/*": Match("shell", (Condition("/cmd", "command", "ls *"), Condition("/cwd", "path_glob", "src/**"))),
    "fetch:url=https://a.b/*:method=GET": Match(
        "fetch", (Condition("/url", "glob", "https://a.b/*"), Condition("/method", "glob", "GET"))
    ),
}
WRONG: dict[str, str] = {
    "": "is empty",
    "   ": "is empty",
    "bash(ls": "unbalanced parenthesis",
    "bash ls)": "unbalanced parenthesis",
    "bash(ls))": "parenthesis",
    "bash(ls (x))": "parenthesis",
    "bash()": "is empty",
    "read()": "nothing in its parentheses",
    "bash(ls; rm x)": "one simple command",
    "bash(ls | wc)": "one simple command",
    "bash(echo $X)": "one simple command",
    "bash(ls > x)": "one simple command",
    "bash(echo 'x)": "unbalanced '",
    'bash(echo "x)': 'unbalanced "',
    "bash(ls \\)": "ends in a backslash",
    "bash(ls\nrm)": "line end",
    "refund(100)": "name the argument",
    "(ls)": "not a tool's name",
    "ba sh": "not a tool's name",
    "tool:a=": "has no value",
    "read(../x)": "`..`",
    "read(~/x)": "`~`",
    "read(a\\b)": "control characters",
    "read(a**b)": "whole name",
    "x" * 2_000: "at most 1000",
    "t" + ":a=b" * 30: "at most 20",
}
INVALID: list[tuple[Any, str]] = [
    (None, "must be an object"),
    ({}, "type: unknown policy None"),
    ({"type": "maybe"}, "type: unknown policy 'maybe'"),
    ({"type": "always_ask", "rules": []}, "rules: is not a field"),
    ({"type": "rules", "rules": []}, "default: unknown effect None"),
    ({"type": "auto", "rules": {}, "default": "ask"}, "rules: must be a list"),
    ({"type": "rules", "rules": [{"effect": "ask", "match": "bash"}] * 1_001, "default": "ask"}, "at most 1000"),
]
INVALID_RULES: list[tuple[Any, str]] = [
    ("bash", "rules.0: must be an object"),
    ({}, "rules.0.effect: unknown effect None"),
    ({"effect": "allow"}, "rules.0.match: must be a text"),
    ({"effect": "allow", "match": ""}, "rules.0.match: is empty"),
    ({"effect": "allow", "match": "bash(ls"}, "rules.0.match: 'bash(ls' has an unbalanced parenthesis"),
    ({"effect": "allow", "match": "bash", "when": 1}, "rules.0.when: is not a field"),
    ({"effect": "deny", "match": "bash", "reason": ""}, "rules.0.reason"),
    ({"effect": "deny", "match": "bash", "priority": True}, "rules.0.priority"),
    ({"effect": "deny", "match": "grep(secrets/**)"}, "rules.0.match: a search by grep from a parent folder"),
    ({"effect": "ask", "match": "glob(secrets/**)"}, "rules.0.match: a search by glob from a parent folder"),
    *(
        (
            {"effect": "deny", "match": {"tool": tool, "input": [{"path": "/path", operator: value}]}},
            f"rules.0.match: a search by {search} from a parent folder would bypass the rule; write {search} for all of its calls",
        )
        for tool, search in {"gr*": "grep", "gre?": "grep", "g*": "glob", "*": "glob", "?lob": "glob", "**": "glob"}.items()
        for operator, value in {"path_glob": "secrets/**", "glob": "secrets*", "regex": "secrets", "equals": "secrets"}.items()
    ),
    ({"effect": "deny", "match": "gr*:path=secrets/*"}, "rules.0.match: a search by grep from a parent folder"),
    ({"effect": "deny", "match": {"tool": ""}}, "rules.0.match: '' is not a tool's name"),
    ({"effect": "deny", "match": {"tool": "t", "input": {}}}, "rules.0.match.input: must be a list"),
    ({"effect": "deny", "match": {"tool": "t", "input_sha256": "x"}}, "rules.0.match.input_sha256: must be 64"),
]
INVALID_CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"gt": 1}, "input.0.path: is missing"),
    ({"path": "amount", "gt": 1}, "input.0.path: 'amount' is not a JSON Pointer"),
    ({"path": "/a~2", "gt": 1}, "is not a JSON Pointer"),
    ({"path": "/a"}, "input.0: has no operator"),
    ({"path": "/a", "above": 1}, "input.0.above: is not an operator; use one of"),
    ({"path": "/a", "gt": "1"}, "input.0.gt: must be a number"),
    ({"path": "/a", "gt": True}, "input.0.gt: must be a number"),
    ({"path": "/a", "gt": float("nan")}, "input.0.gt: must be a number"),
    ({"path": "/a", "one_of": []}, "input.0.one_of: must be a list of 1"),
    ({"path": "/a", "exists": 1}, "input.0.exists: must be true or false"),
    ({"path": "/a", "min_length": -1}, "input.0.min_length: must be a whole number"),
    ({"path": "/a", "regex": "(a"}, "input.0.regex: must be a regular expression: missing )"),
    ({"path": "/a", "regex": "(?=a)"}, "no look-around"),
    ({"path": "/a", "regex": "((a{900}){900}){900}"}, "input.0.regex: must be a regular expression"),
    ({"path": "/a", "regex": "a" * 600}, "1 to 500"),
    ({"path": "/a", "path_glob": "../x"}, "input.0.path_glob: must be a pattern of paths"),
    ({"path": "/a", "command": "a; b"}, "input.0.command: the command pattern"),
    ({"path": "/a", "command": 5}, "input.0.command: must be a text"),
]


def test_a_text_is_read() -> None:
    """In the notations of Claude Code and Docker's agents."""
    assert {text: match_of(text) for text in TEXTS} == TEXTS


def test_a_rule_from_a_text_is_written_and_read_back_unchanged() -> None:
    for match in TEXTS.values():
        rule = Rule("allow", match, "Because.", 3, source="tool")
        assert rule_of(rule_as_json(rule)) == rule


def test_a_malformed_text_is_refused_with_its_fault() -> None:
    for text, fault in WRONG.items():
        with pytest.raises(ValueError, match=re.escape(fault)):
            match_of(text)


def test_a_malformed_policy_is_refused_with_the_name_of_the_field() -> None:
    rules = list(INVALID_RULES)
    for condition, words in INVALID_CONDITIONS:
        rules.append(({"effect": "deny", "match": {"tool": "t", "input": [condition]}}, words))
    many = {"effect": "deny", "match": {"tool": "t", "input": [{"path": "/a", "gt": 1}] * 21}}
    twice = {"effect": "deny", "match": {"tool": "t", "input": [{"path": "/cmd", "command": "ls"}] * 2}}
    rules += [(many, "rules.0.match.input: has"), (twice, "rules.0.match.input: has")]
    for policy, words in [*INVALID, *(({"type": "rules", "rules": [rule], "default": "ask"}, words) for rule, words in rules)]:
        with pytest.raises(ValueError, match=r".+") as refused:
            policy_of(policy)
        assert words in str(refused.value)


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        ({"type": "always_allow"}, {"type": "always_allow"}),
        ({"type": "always_ask"}, {"type": "always_ask"}),
        ({"type": "always_deny"}, {"type": "auto", "rules": [], "default": "deny"}),
        ({"type": "auto", "rules": [], "default": "deny"}, {"type": "auto", "rules": [], "default": "deny"}),
        ({"type": "rules", "default": "ask"}, {"type": "always_ask"}),
    ],
)
def test_a_policy_is_written_in_the_types_of_the_clients(policy: dict[str, Any], written: dict[str, Any]) -> None:
    assert policy_as_json(policy_of(policy)) == written
    assert policy_of(written) == policy_of(policy)


def test_rules_keep_their_order_and_their_texts() -> None:
    rules = [
        {"effect": "allow", "match": "bash(ls *)"},
        {
            "effect": "deny",
            "match": {"tool": "refund", "input": [{"path": "/amount", "gt": 100}]},
            "reason": "Too much.",
            "priority": 1,
        },
        {"effect": "allow", "match": {"tool": "refund", "input_sha256": "0" * 64}},
    ]
    assert policy_as_json(policy_of({"type": "rules", "rules": rules, "default": "ask"})) == {
        "type": "auto",
        "rules": rules,
        "default": "ask",
    }


KNOWN = " (beside a rule that denies or asks about commands: only programs that are known to run no others)"
SURE = ", where it is sure which commands run, and all commands of the line are allowed"
TOOLS = st.text("abcXY_-*?.", min_size=1, max_size=8) | st.sampled_from(["bash", "Bash", "read", "mcp__a", "mcp__a__b", "write"])
PATTERNS = st.text("ab *'\"\\=:/(){};$", max_size=8)
CONDITIONS = st.one_of(
    st.fixed_dictionaries({"path": st.sampled_from(["/command", "/cmd", "/file_path", "/a/b", ""]), "command": PATTERNS}),
    st.fixed_dictionaries({"path": st.sampled_from(["/file_path", "/path", "/a"]), "path_glob": PATTERNS}),
    st.fixed_dictionaries({"path": st.sampled_from(["/url", "/a~1b", "/"]), "glob": PATTERNS}),
    st.fixed_dictionaries(
        {"path": st.just("/n"), "gt": st.integers(-9, 9), "lte": st.floats(allow_nan=False, allow_infinity=False)}
    ),
)
MATCHES = st.one_of(
    PATTERNS,
    st.builds("{}({})".format, TOOLS, PATTERNS),
    st.builds("{}:{}={}".format, TOOLS, st.sampled_from(["cmd", "path", "x"]), PATTERNS),
) | st.fixed_dictionaries({"tool": TOOLS, "input": st.lists(CONDITIONS, max_size=3)})


@given(MATCHES, st.sampled_from(["allow", "ask", "deny"]))
def test_any_rule_is_written_and_read_back_unchanged_or_refused_with_its_fault(match: Any, effect: str) -> None:
    try:
        rule = rule_of({"effect": effect, "match": match})
    except ValueError as error:
        assert str(error).startswith("rule.")  # noqa: PT017 - most matches are no errors
    else:
        assert rule_of(rule_as_json(rule)) == rule
        assert policy_of(policy_as_json(Policy((rule,), "deny"))) == Policy((rule,), "deny")
        assert covers(rule)


@pytest.mark.parametrize(
    ("match", "words"),
    [
        ("bash", f"every call of bash{KNOWN}"),
        ("*", "every call of every tool"),
        ("mcp__github__*", "every call of every tool of the MCP server github"),
        ("mcp__github__get_*", "every call of every tool named like mcp__github__get_*"),
        ("bash(git status *)", f"every bash command that starts with `git status`{SURE}"),
        ("bash(git status)", f"only the bash command `git status`{SURE}"),
        ("read(src/**)", 'every call of read where the path is a path that fits "src/**"'),
        ({"tool": "refund", "input": [{"path": "/amount", "lte": 100}]}, "every call of refund where amount is at most 100"),
        (
            {"tool": "refund", "input": [{"path": "/to/country", "one_of": ["DE", "FR"]}, {"path": "/note", "exists": False}]},
            'every call of refund where to.country is one of "DE", "FR" and note is not given',
        ),
        ({"tool": "refund", "input_sha256": "0" * 64}, "only this exact input of refund"),
    ],
)  # fmt: skip
def test_covers_describes_a_rule(match: Any, words: str) -> None:
    assert covers(rule_of({"effect": "allow", "match": match})) == words


def test_covers_says_that_a_rule_that_denies_applies_to_parts_of_lines_and_values() -> None:
    assert covers(Rule("deny", match_of("bash"))) == "every call of bash"
    assert (
        covers(Rule("deny", match_of("bash(rm *)"))) == "every bash command that starts with `rm`, also as a part of a longer line"
    )
    sought = rule_of({"effect": "deny", "match": {"tool": "t", "input": [{"path": "/x", "regex": "a"}]}})
    assert covers(sought) == 'every call of t where x has something that fits the expression "a"'


def test_a_grant_must_be_for_the_call_s_tool() -> None:
    assert grant("bash", "bash(ls *)", "", id="g").match == match_of("bash(ls *)")
    assert grant("bash", "exact", "a" * 64, id="g").match == Match("bash", input_sha256="a" * 64)
    with pytest.raises(ValueError, match="is about read, and the call is one of bash"):
        grant("bash", "read", "", id="g")


@pytest.mark.parametrize(
    "rule",
    [
        {"effect": "allow", "match": {"tool": "gr*", "input": [{"path": "/path", "path_glob": "src/**"}]}},
        {"effect": "deny", "match": {"tool": "re*", "input": [{"path": "/path", "path_glob": "src/**"}]}},
        {"effect": "deny", "match": {"tool": "gr*", "input": [{"path": "/pattern", "glob": "*password*"}]}},
        {"effect": "deny", "match": "gr*"},
        {"effect": "deny", "match": {"tool": "grep", "input": [{"path": "/path", "exists": False}]}},
    ],
)
def test_a_rule_about_searches_that_cannot_be_bypassed_is_accepted(rule: dict[str, Any]) -> None:
    """Such as one that allows, or one about other tools or arguments."""
    assert rule_of(rule).effect == rule["effect"]
