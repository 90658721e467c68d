"""Conditions on arguments: what they compare, and how they treat values that they cannot judge."""

import math
from typing import Any

import pytest

from models.pure.json.canonical import digest
from models.pure.policy import CompiledRules, Rule, grant, match_of, rule_of

YES, NO, CANNOT = "yes", "no", "cannot judge"


def judged(match: Any, arguments: dict[str, Any], *, tool: str = "t", workdir: str | None = None) -> str:
    """YES, NO or CANNOT, inferred from the verdicts of rules that allow, ask and deny by this match."""
    effects = {}
    for effect in ("allow", "ask", "deny"):
        rule = rule_of({"effect": effect, "match": match})
        effects[effect] = bool(
            CompiledRules([rule], "deny" if effect == "allow" else "allow").judge(tool, arguments, workdir).rules
        )
    assert effects["ask"] == effects["deny"]
    return {(True, True): YES, (False, False): NO, (False, True): CANNOT}[effects["allow"], effects["deny"]]


CONDITIONS: list[tuple[dict[str, Any], Any, str]] = [
    ({"equals": 1}, 1.0, YES), ({"equals": 1}, True, NO), ({"equals": True}, 1, NO), ({"equals": "1"}, 1, NO),
    ({"equals": {"a": [1, None]}}, {"a": [1, None]}, YES), ({"equals": None}, None, YES), ({"equals": 1}, math.nan, CANNOT),
    ({"one_of": ["a", 2]}, 2, YES), ({"one_of": ["a", 2]}, "b", NO), ({"one_of": [0]}, False, NO),
    ({"glob": "a*c"}, "abxc", YES), ({"glob": "a*c"}, "a\n/c", YES), ({"glob": "a?c"}, "abc", YES),
    ({"glob": "a?c"}, "ac", NO), ({"glob": "*b*b*"}, "ab", NO), ({"glob": "ab*ba"}, "aba", NO), ({"glob": "[a]"}, "a", NO),
    ({"glob": "a*"}, 1, CANNOT), ({"glob": "a?c"}, "a\ud800c", CANNOT), ({"regex": "[0-9]+"}, "12", YES),
    ({"regex": "x"}, ["x"], CANNOT), ({"regex": "x"}, "y", NO), ({"regex": "(a+)+$"}, "a" * 5_000 + "!", NO),
    ({"regex": "a|b"}, "a\ud800", CANNOT), ({"gt": 100}, 101, YES), ({"gt": 100}, 100, NO), ({"gte": 100}, 100, YES),
    ({"lt": 1.5}, 1, YES), ({"lte": 1}, 1.1, NO), ({"gt": 100}, "1000", CANNOT), ({"gt": 0}, True, CANNOT),
    ({"gt": 0}, math.nan, CANNOT), ({"gt": 0}, math.inf, CANNOT), ({"gt": 100}, None, CANNOT), ({"gt": 100}, [1000], CANNOT),
    ({"gt": 100}, 10**400, YES), ({"min_length": 2}, "ab", YES), ({"min_length": 2}, [1], NO),
    ({"max_length": 1}, {"a": 1}, YES), ({"max_length": 1}, 5, CANNOT), ({"exists": True}, None, YES),
    ({"exists": False}, 0, NO), ({"gte": 1, "lte": 5}, 3, YES), ({"gte": 1, "lte": 5}, 6, NO),
]  # fmt: skip


def test_a_condition_holds_or_not_or_errs_to_the_safe_side() -> None:
    """A value that cannot be judged meets rules that deny or ask, and does not meet rules that allow."""
    for condition, value, expected in CONDITIONS:
        assert judged({"tool": "t", "input": [{"path": "/x", **condition}]}, {"x": value}) == expected, (condition, value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b", YES), ("/l/0", YES), ("/l/1", NO), ("/l/-", NO), ("/l/00", NO), ("/l/x", NO), ("/none", NO), ("/a/none/deep", NO),
        ("/s/0", CANNOT), ("/n/x", CANNOT), ("/a~1b", YES), ("/m~0n", YES), ("/", YES), ("/l/\u0660", NO),
    ],
)  # fmt: skip
def test_a_pointer_finds_its_argument(path: str, expected: str) -> None:
    """By RFC 6901. A missing value does not meet a condition. A place inside a text or number cannot be judged."""
    arguments = {"a": {"b": 1}, "l": [1], "s": "12", "n": 1, "a/b": 1, "m~n": 1, "": 1}
    assert judged({"tool": "t", "input": [{"path": path, "equals": 1}]}, arguments) == expected
    exists = {YES: YES, NO: NO, CANNOT: NO}[expected]
    assert judged({"tool": "t", "input": [{"path": path, "exists": True}]}, arguments) == exists


PATHS: list[tuple[str, Any, str]] = [
    ("src/**", "src/a/b.py", YES), ("src/**", "./src//a", YES), ("src/**", "src", YES), ("src/**", "srcx/a", NO),
    ("src/**", "srcx/../etc/passwd", NO), ("src/**", "x/src/a", NO), ("src/*", "src/a", YES), ("src/*.py", "src/a.py", YES),
    ("**/*.py", "a.py", YES), ("**/*.py", "x/y/a.py", YES), ("**", "a/b", YES), ("src/**/t?.py", "src/t1.py", YES),
    ("src/**/t?.py", "src/a/b/t1.py", YES), ("/etc/**", "/etc/passwd", YES), ("/etc/**", "//etc/./x", YES),
    ("src/**", "src/../etc/passwd", CANNOT), ("src/**", "x/../src/a", CANNOT), ("src/**", "src/x/../a", CANNOT),
    ("src/**", "src\\a", CANNOT), ("src/**", "/home/u/src/a", CANNOT), ("src/**", "../../src/a", CANNOT),
    ("src/**", "~/src/a", CANNOT), ("**", "/etc/passwd", CANNOT), ("src/**", 5, CANNOT), ("src/**", "src/\ud800", CANNOT),
    ("src/**", "src/" + "a/" * 3_000, CANNOT), ("/etc/**", "etc/x", CANNOT), ("src/a", "src/a/b", CANNOT),
    (".env", "deep/.env", CANNOT), ("*.pem", "a/b.pem", CANNOT), ("src/*", "src/a/b", CANNOT),
]  # fmt: skip


def test_a_path_is_allowed_only_if_it_is_certainly_inside() -> None:
    """And denied if it may be inside. A bare name matches anywhere."""
    for pattern, path, expected in PATHS:
        assert judged(f"read({pattern})", {"file_path": path}, tool="read") == expected, (pattern, path)


def test_absolute_paths_below_a_known_workdir_are_relative_ones() -> None:
    assert judged("read(src/**)", {"file_path": "/work/src/a"}, tool="read", workdir="/work") == YES
    assert judged("read(src/**)", {"file_path": "/work/src/a"}, tool="read", workdir="/work/") == YES
    assert judged("read(src/**)", {"file_path": "/workx/src/a"}, tool="read", workdir="/work") == CANNOT


def test_an_expression_must_fit_the_whole_value_to_allow_and_any_part_to_deny() -> None:
    match = {"tool": "fetch", "input": [{"path": "/url", "regex": "https://example\\.com/.*"}]}
    assert judged(match, {"url": "https://example.com/x"}, tool="fetch") == YES
    assert judged(match, {"url": "https://evil.com/?https://example.com/"}, tool="fetch") == CANNOT
    assert judged({"tool": "t", "input": [{"path": "/x", "regex": "drop.*table"}]}, {"x": "drop\ntable"}) == CANNOT


def test_a_text_pattern_allows_a_command_line_only_if_it_is_certainly_one_command() -> None:
    """Because the pattern does not know what separates commands."""
    for condition in ({"glob": "ls*"}, {"regex": "ls.*"}):
        book = CompiledRules(
            [rule_of({"effect": "allow", "match": {"tool": "bash", "input": [{"path": "/command", **condition}]}})]
        )
        assert book.judge("bash", {"command": "ls -la"}).effect == "allow"
        for command in ("ls; rm x", "ls | ls", "ls $(rm x)", "ls > x"):
            assert book.judge("bash", {"command": command}).effect == "ask"


def test_all_conditions_of_a_rule_must_hold() -> None:
    book = CompiledRules([Rule("allow", match_of("shell:cmd=ls*:cwd=src/*"))])
    assert book.judge("shell", {"cmd": "ls -la", "cwd": "src/a/b"}).effect == "allow"
    assert book.judge("shell", {"cmd": "ls -la", "cwd": "etc"}).effect == "ask"
    assert book.judge("shell", {"cmd": "ls; rm x", "cwd": "src/a"}).effect == "ask"
    assert book.judge("shell", {"cwd": "src/a"}).effect == "ask"


@pytest.mark.parametrize("command", [5, ["rm"], {"a": "rm"}])
def test_a_command_that_is_no_text_meets_rules_that_deny_and_none_that_allow(command: Any) -> None:
    assert CompiledRules([Rule("deny", match_of("bash(rm *)"))], "allow").judge("bash", {"command": command}).effect == "deny"
    assert CompiledRules([Rule("allow", match_of("bash(*)"))]).judge("bash", {"command": command}).effect == "ask"


def test_a_call_without_a_command_meets_only_the_pattern_for_all_commands() -> None:
    """Such as a call that restarts the shell."""
    for arguments in ({"restart": True}, {"command": None}, {"command": ""}):
        assert CompiledRules([Rule("deny", match_of("bash(rm *)"))], "allow").judge("bash", arguments).effect == "allow"
        assert CompiledRules([Rule("deny", match_of("bash(*)"))], "allow").judge("bash", arguments).effect == "deny"


def test_an_exact_match_covers_one_input() -> None:
    """In any order of its keys, and even if its command line cannot be read with certainty."""
    arguments = {"command": "echo $HOME > x", "timeout_ms": 5}
    book = CompiledRules([grant("bash", "exact", digest(arguments), id="grnt_1")])
    assert book.judge("bash", dict(reversed(arguments.items()))).effect == "allow"
    assert book.judge("bash", arguments | {"timeout_ms": 6}).effect == "ask"
    assert book.judge("bash", arguments | {"timeout_ms": math.nan}).effect == "ask"
    assert book.judge("zsh", arguments).effect == "ask"
