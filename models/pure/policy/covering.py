"""Describes in words which calls a rule covers, for people who decide, and for readers of the audit."""

import json
from typing import Any

from models.pure.policy.conditions import OPERATORS
from models.pure.policy.destroying import open_destroys
from models.pure.policy.rules import FILE_PATHS, Condition, Effect, Rule
from models.pure.policy.texts import text_of

_SHOWN = 200
KNOWN_ONLY = "beside a rule that denies or asks about commands: only programs that are known to run no others"
"""The limit of an allow for all of bash; see `unknown_programs`."""


def covers(rule: Rule) -> str:
    """Return the calls that the rule covers, in words: `every call of read where the path is a path that fits "src/**"`."""
    match = rule.match
    if match.input_sha256:
        return f"only this exact input of {match.tool}"
    calls = _calls(match.tool)
    if not match.conditions:
        return f"{calls} ({KNOWN_ONLY})" if match.tool == "bash" and rule.effect == "allow" else calls
    commands = [c for c in match.conditions if c.operator == "command"]
    spares = Condition("/command", "destroys", value=False) in match.conditions
    if commands and len(match.conditions) == 1 + spares:
        return _commands(match.tool, str(commands[0].value), rule.effect, spares=spares)
    return f"{calls} where {' and '.join(_condition(c, match.tool, rule.effect) for c in match.conditions)}"


def named_in_words(rule: Rule) -> str:
    """Return the rule for the audit and the model: its text, or the calls that it covers, and its reason."""
    calls = text_of(rule.match) or covers(rule)
    origin = f"grant {rule.id}" if rule.source == "grant" else f"{rule.source} rule"
    return f"{origin}: {rule.effect} {_cut(calls)}" + (f" ({rule.reason})" if rule.reason else "")


def _calls(tool: str) -> str:
    if tool == "*":
        return "every call of every tool"
    if tool.startswith("mcp__") and tool.endswith("__*") and "*" not in tool[:-1]:
        return f"every call of every tool of the MCP server {tool[5:-3]}"
    return f"every call of every tool named like {tool}" if set("*?") & set(tool) else f"every call of {tool}"


def _commands(tool: str, pattern: str, effect: Effect, *, spares: bool) -> str:
    plain = not any(sign in pattern for sign in "\"'\\")
    if pattern == "*":
        calls = f"every {tool} command"
    elif plain and pattern.endswith(" *") and "*" not in pattern[:-1]:
        calls = f"every {tool} command that starts with `{pattern[:-2]}`"
    elif "*" not in pattern:
        calls = f"only the {tool} command `{pattern}`"
    else:
        calls = f"every {tool} command that fits `{pattern}`, where * is anything"
    if spares and "*" in pattern:
        example = open_destroys(tuple(pattern.removesuffix(" *").split())) if plain and pattern.endswith(" *") else ""
        calls += f", but none that takes something away{f' (`{example}`)' if example else ''}"
    if effect == "allow":
        return f"{calls}, where it is sure which commands run, and all commands of the line are allowed"
    return f"{calls}, also as a part of a longer line"


def _condition(condition: Condition, tool: str, effect: Effect) -> str:
    name = condition.path[1:].replace("/", ".").replace("~1", "/").replace("~0", "~") or "the input"
    if condition.operator == "command":
        return f"{name} is a command that fits `{condition.value}`"
    if condition.operator == "destroys":
        return f"{name} has {'a' if condition.value else 'no'} command that takes something away"
    if condition.operator == "exists":
        return f"{name} is {'given' if condition.value else 'not given'}"
    if condition.operator == "path_glob" and condition.path == FILE_PATHS.get(tool):
        name = "the path"
    test = OPERATORS[condition.operator].words.format(_cut(_value_in_words(condition.value)))
    if condition.operator == "regex" and effect != "allow":
        test = test.replace("fits", "has something that fits", 1)
    return f"{name} {test}"


def _value_in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(json.dumps(item, ensure_ascii=False) for item in value)
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
