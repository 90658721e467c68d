"""Checks a toolset's listing with the rules of Assent, which the toolset's own process does not load."""

from typing import Any

from models.pure.json.fitting import unusable_pattern
from models.pure.naming import RESERVED, is_reserved
from models.pure.policy import policy_of


def fault(entry: dict[str, Any]) -> str | None:
    """Return the first fault of a listed tool, with its remedy; None for none."""
    if is_reserved(entry["name"]):
        return f"its name {RESERVED}"
    if pattern := unusable_pattern(entry["input_schema"]):
        return f"the pattern {pattern!r} has look-around or back-references; write it without, or check it inside"
    try:
        return _policy_fault(entry) if entry["policy"] is not None else None
    except ValueError as error:
        return f"policy: {error}"


def _policy_fault(entry: dict[str, Any]) -> str | None:
    """Return what a policy says beyond its own tool and that tool's parameters. Raises ValueError if it is not a policy."""
    parameters = entry["input_schema"]["properties"]
    for rule in policy_of(entry["policy"], tool=entry["name"]).rules:
        if rule.match.tool not in (entry["name"], "*"):
            return f"policy: a rule is about {rule.match.tool!r}; match the tool itself, {entry['name']!r}"
        for condition in rule.match.conditions:
            name = condition.path.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
            if name not in parameters:
                return f"policy names {name!r}, which is none of its parameters; they are: {', '.join(parameters) or 'none'}"
    return None
