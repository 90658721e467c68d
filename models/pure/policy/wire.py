"""Parses policies and rules from JSON, and renders them.

    {"type": "always_allow" | "always_ask" | "always_deny"}
    {"type": "rules" | "auto", "rules": [RULE], "default": "allow" | "ask" | "deny", "unknown_programs"?: "ask" | "allow"}

RULE is `{"effect", "match", "reason"?, "priority"?}`. A match is a text (see `texts`) or `{"tool", "input"?, "input_sha256"?}`; its
input is a list of `{"path": POINTER, OPERATOR: VALUE, ...}` that must all hold. Policies with rules are returned as `auto`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.pure.policy.conditions import DIRECTORY, OPERATORS, pointer
from models.pure.policy.globs import text_glob
from models.pure.policy.rules import (
    EFFECTS,
    FILE_PATHS,
    MAX_CONDITIONS,
    MAX_PRIORITY,
    MAX_RULES,
    MAX_TEXT,
    Condition,
    Effect,
    Match,
    Policy,
    Rule,
    Source,
)
from models.pure.policy.texts import command_pattern, match_of, text_of, tool_of

_ALWAYS: dict[str, Effect] = {"always_allow": "allow", "always_ask": "ask", "always_deny": "deny"}
_SEARCHES = ("glob", "grep")
_OF_PLACES = frozenset({"equals", "one_of", "glob", "path_glob", "regex"})
"""Operators that distinguish folders."""
NEVER = "always_deny"
"""The id of the rule of `always_deny`, which nothing overrides."""


def policy_of(value: Any, *, tool: str = "*", source: Source = "tool") -> Policy:
    """Parse the policy of `tool`. Raises ValueError, which names the field, the fault and the remedy."""
    if not isinstance(value, Mapping):
        raise ValueError('must be an object such as {"type": "always_ask"}')
    kind = value.get("type")
    if isinstance(kind, str) and kind in _ALWAYS:
        _refuse_unknown(value, {"type"}, "")
        return _never(tool, source) if kind == NEVER else Policy((), _ALWAYS[kind])
    if kind not in ("rules", "auto"):
        raise ValueError(f"type: unknown policy {kind!r}; use always_allow, always_ask, always_deny or rules")
    _refuse_unknown(value, {"type", "rules", "default", "unknown_programs"}, "")
    rules, default, unknown = value.get("rules", []), value.get("default"), value.get("unknown_programs", "ask")
    if unknown not in ("ask", "allow"):
        raise ValueError(f"unknown_programs: unknown value {unknown!r}; use ask or allow, or leave it out for ask")
    if default not in EFFECTS:
        raise ValueError(f"default: unknown effect {default!r}; use allow, ask or deny, for calls that no rule matches")
    if not isinstance(rules, list):
        raise ValueError("rules: must be a list of rules")
    if len(rules) > MAX_RULES:
        raise ValueError(f"rules: there are {len(rules)}; use at most {MAX_RULES}, with wider matches")
    if not rules and default == "deny":
        return replace(_never(tool, source), unknown_programs=unknown)
    parsed_rules = [rule_of(rule, where=f"rules.{n}", source=source) for n, rule in enumerate(rules)]
    return Policy(tuple(replace(rule, guard_rail=unknown == "allow") for rule in parsed_rules), default, unknown)


def rule_of(value: Any, *, where: str = "rule", source: Source = "tool", id: str = "") -> Rule:  # noqa: A002 - the row's own word
    """Parse one rule. Raises ValueError, which begins with `where` and the field."""
    if not isinstance(value, Mapping):
        raise ValueError(f'{where}: must be an object such as {{"effect": "ask", "match": "bash(git push *)"}}')
    _refuse_unknown(value, {"effect", "match", "reason", "priority"}, f"{where}.")
    effect, reason, priority = value.get("effect"), value.get("reason"), value.get("priority", 0)
    if effect not in EFFECTS:
        raise ValueError(f"{where}.effect: unknown effect {effect!r}; use allow, ask or deny")
    if reason is not None and not (isinstance(reason, str) and 0 < len(reason) <= MAX_TEXT):
        raise ValueError(f"{where}.reason: must be a text of 1 to {MAX_TEXT} characters; leave it out for none")
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > MAX_PRIORITY:
        raise ValueError(f"{where}.priority: must be a whole number of at most {MAX_PRIORITY}; leave it out for 0")
    match = _match(value.get("match"), f"{where}.match")
    _refuse_search_by_folder(effect, match, f"{where}.match")
    _refuse_command_by_directory(effect, match, f"{where}.match")
    return Rule(effect, match, reason, priority, source, id)


def policy_as_json(policy: Policy) -> dict[str, Any]:
    """Return the policy as JSON for clients. `policy_of` parses it to an equal policy."""
    if not policy.rules and policy.default != "deny" and policy.unknown_programs == "ask":
        return {"type": f"always_{policy.default}"}
    rules = [rule_as_json(rule) for rule in policy.rules if rule.id != NEVER]
    fields = {"type": "auto", "rules": rules, "default": policy.default}
    return fields | ({"unknown_programs": "allow"} if policy.unknown_programs == "allow" else {})


def rule_as_json(rule: Rule) -> dict[str, Any]:
    """Return the rule as JSON for clients."""
    fields: dict[str, Any] = {"effect": rule.effect, "match": match_as_json(rule.match)}
    if rule.reason is not None:
        fields["reason"] = rule.reason
    return fields | ({"priority": rule.priority} if rule.priority else {})


def match_as_json(match: Match) -> str | dict[str, Any]:
    """Return the match as a text if a text can express it, else as an object."""
    if (text := text_of(match)) is not None:
        return text
    fields: dict[str, Any] = {"tool": match.tool}
    if match.conditions:
        fields["input"] = [{"path": c.path, c.operator: c.value} for c in match.conditions]
    return fields | ({"input_sha256": match.input_sha256} if match.input_sha256 else {})


def _match(value: Any, where: str) -> Match:
    try:
        if isinstance(value, str):
            return match_of(value)
        if not isinstance(value, Mapping) or not isinstance(value.get("tool"), str):
            raise ValueError('must be a text such as bash(ls *), or an object with "tool"')
        tool = tool_of(value["tool"], servers=False)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    _refuse_unknown(value, {"tool", "input", "input_sha256"}, f"{where}.")
    sha256, tests = value.get("input_sha256"), value.get("input", [])
    if sha256 is not None and not (isinstance(sha256, str) and re.fullmatch(r"[0-9a-f]{64}", sha256)):
        raise ValueError(f"{where}.input_sha256: must be 64 lowercase hex digits")
    if not isinstance(tests, list):
        raise ValueError(f'{where}.input: must be a list such as [{{"path": "/amount", "gt": 100}}]')
    conditions = [condition for n, test in enumerate(tests) for condition in _conditions(test, f"{where}.input.{n}")]
    if len(conditions) > MAX_CONDITIONS:
        raise ValueError(f"{where}.input: has {len(conditions)} conditions; use at most {MAX_CONDITIONS}")
    try:
        return Match(tool, tuple(conditions), sha256)
    except ValueError as error:
        raise ValueError(f"{where}.input: {error}") from None


def _conditions(value: Any, where: str) -> list[Condition]:
    if not isinstance(value, Mapping) or not isinstance(value.get("path"), str):
        raise ValueError(f'{where}.path: is missing; name the argument, as in {{"path": "/amount", "gt": 100}}')
    path = value["path"]
    if len(path) > MAX_TEXT:
        raise ValueError(f"{where}.path: has {len(path)} characters; use at most {MAX_TEXT}")
    try:
        pointer(path)
    except ValueError as error:
        raise ValueError(f"{where}.path: {error}") from None
    conditions = [_condition(path, str(operator), value, where) for operator, value in value.items() if operator != "path"]
    if not conditions:
        raise ValueError(f"{where}: has no operator; add one of {', '.join(sorted(OPERATORS))}")
    return conditions


def _condition(path: str, operator: str, value: Any, where: str) -> Condition:
    if operator == "command":
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise ValueError(f"{where}.command: must be a text of 1 to {MAX_TEXT} characters")
        try:
            return Condition(path, operator, command_pattern(value))
        except ValueError as error:
            raise ValueError(f"{where}.command: {error}") from None
    if operator not in OPERATORS:
        raise ValueError(f"{where}.{operator}: is not an operator; use one of {', '.join(sorted(OPERATORS))} or command")
    if requirement := OPERATORS[operator].check(value):
        raise ValueError(f"{where}.{operator}: must be {requirement}")
    return Condition(path, operator, value)


def _refuse_search_by_folder(effect: Effect, match: Match, where: str) -> None:
    """Refuse rules that deny or ask by the folder of a search, since a search from a parent folder reads that folder as well."""
    if effect == "allow":
        return
    for tool in _SEARCHES:
        tests = [c for c in match.conditions if c.path == FILE_PATHS[tool] and c.operator in _OF_PLACES]
        if tests and text_glob(match.tool)(tool):
            remedy = f"write {tool} for all of its calls"
            if match.tool != tool:
                remedy += f", and name the other tools that {match.tool} stands for"
            raise ValueError(f"{where}: a search by {tool} from a parent folder would bypass the rule; {remedy}")


def _refuse_command_by_directory(effect: Effect, match: Match, where: str) -> None:
    """Refuse rules that deny or ask by the directory of a command, since the command can change its directory itself."""
    if effect != "allow" and text_glob(match.tool)("bash") and any(c.path == DIRECTORY for c in match.conditions):
        remedy = "write a pattern of commands, such as bash(git push *), or bash for all of its calls"
        raise ValueError(f"{where}: a `cd` in the command would bypass the rule; {remedy}")


def _never(tool: str, source: Source) -> Policy:
    return Policy((Rule("deny", Match(tool), source=source, id=NEVER),), "deny")


def _refuse_unknown(value: Mapping[str, Any], fields: set[str], where: str) -> None:
    unknown = sorted(str(field) for field in value if field not in fields)
    if unknown:
        raise ValueError(f"{where}{unknown[0]}: is not a field here; use {', '.join(sorted(fields))}")
