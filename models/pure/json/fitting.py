"""Validates a tool call's input against the tool's JSON Schema (Draft 2020-12). Errors name the field.

Schemas come from clients and inputs from models, so validation must not block a process, in which hundreds of other turns run. So
RE2, which takes linear time, matches the patterns, a set finds equal items, and a check may take a quarter of a second of its
thread's CPU. `jsonschema` offers none of these, so this module replaces keywords, by the public `create`. `jsonschema-rs` matches
in linear time but has no time limit: a chain of `$ref` makes it hold the GIL without end.
`tests/tools/test_a_schema_costs_no_more_than_its_turn.py` holds the limits, and fails when `jsonschema` no longer matches by
backtracking. `models.pure.json.tool_schema` checks the schemas themselves.
"""

import json
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import referencing
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import create

from models.pure import ahead
from models.pure.json.canonical import canonical_text
from models.pure.regex import InvalidPattern, compile_schema_pattern
from models.pure.text.visible import visible_lines

_ERRORS = 3
_MESSAGE = 300
_SECONDS = 0.25
"""CPU time for one check. Hundreds of turns of the same process wait meanwhile."""
_MATCHING = 50_000_000
"""Most steps of one match: instructions of the pattern's program, times characters of the text. RE2 takes about 10 ns for each."""
_KEPT_CHARACTERS = 4000
"""Longest schema whose validator is cached: a validator takes twenty times the memory of its schema."""
NOTHING_ELSE: referencing.Registry[Any] = referencing.Registry()
"""The empty registry of schemas, for a validator: the default registry fetches any address that a `$ref` names."""
_deadline: ContextVar[float] = ContextVar("deadline")
_OURS = frozenset({"pattern", "patternProperties", "additionalProperties"})
"""Keywords whose error messages are written here."""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class TooSlow(Exception):
    """The CPU time is used up."""


@ahead.costly
def misfit(schema: dict[str, Any], value: object) -> str | None:
    """Return None if the input fits, else the first errors, each with its field: `input.path: must be string, not integer`.

    A schema that is invalid, endless or refers outside itself is an error too. References are never fetched.
    """
    messages: list[str] = []
    try:
        text = json.dumps(schema)
        validator = _kept_validator(text) if len(text) <= _KEPT_CHARACTERS else _validator(schema)
        if validator is None:
            return "input: the tool's schema cannot be used (unevaluatedProperties beside patternProperties)"
        for error in errors(validator, value):
            messages += [message for message in _messages(error) if message not in messages]
            if len(messages) >= _ERRORS:
                break
    except TooSlow:
        return "input: the tool's schema takes too long to check"
    except Exception as error:  # noqa: BLE001 - a schema that somebody wrote can fail in any way
        return f"input: the tool's schema cannot be used ({type(error).__name__})"
    return "; ".join(messages[:_ERRORS]) or None


def errors(validator: Any, value: object) -> Iterator[ValidationError]:
    """Yield the errors of a value by a validator of `validator_class`, within the limit of CPU time."""
    start()
    yield from validator.iter_errors(value)


def start(seconds: float = _SECONDS) -> None:
    """Start the CPU time of a check."""
    _deadline.set(time.thread_time() + ahead.limited(seconds))


def check_time() -> None:
    """Raise TooSlow if the check's CPU time is used up, OutOfTime if that of a transaction is."""
    if time.thread_time() > _deadline.get():
        ahead.require(_SECONDS)
        raise TooSlow


def validator_class(keywords: dict[str, Any]) -> Any:
    """Return a class of validators that know these keywords alone, and stop when the CPU time is used up."""
    linear = {"uniqueItems": _unique_items} if "uniqueItems" in keywords else {}
    limited = {name: _in_time(keyword) for name, keyword in (keywords | linear).items()}
    return create(Draft202012Validator.META_SCHEMA, limited)


def _validator(schema: dict[str, Any]) -> Any | None:
    """Return the schema's validator, or None for a schema that combines keywords that cannot be checked together."""
    if {"unevaluatedProperties", "patternProperties"} <= {key for part in parts(schema) for key in part}:
        return None
    return _Validator(schema, registry=NOTHING_ELSE)


@lru_cache(maxsize=256)
def _kept_validator(schema: str) -> Any | None:
    return _validator(json.loads(schema))


def unusable_pattern(schema: object) -> str | None:
    """Return the schema's first regular expression that RE2 does not support (look-around, back-references), or None.

    A schema with so many patterns that the CPU time is used up counts as one with an unusable pattern.
    """
    start()
    for part in parts(schema):
        pattern_properties = part.get("patternProperties")
        for pattern in [part.get("pattern"), *(pattern_properties if isinstance(pattern_properties, dict) else ())]:
            if isinstance(pattern, str):
                try:
                    check_time()
                    compile_schema_pattern(pattern)
                except (TooSlow, InvalidPattern):
                    return pattern
    return None


def _matches(pattern: str, text: str) -> bool:
    check_time()
    expression = compile_schema_pattern(pattern)
    if expression.programsize * len(text) > _MATCHING:
        raise TooSlow
    return expression.search(text) is not None


def _messages(error: ValidationError) -> list[str]:
    path = "input" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    value: Any = error.instance
    demand: Any = error.validator_value
    if error.validator == "required":
        return [_message(f"{path}.{name}", "is required") for name in demand if name not in value]
    if error.validator == "type":
        types = " or ".join(demand) if isinstance(demand, list) else demand
        return [_message(path, f"must be {types}, not {_TYPES.get(type(value), 'null')}")]
    if error.validator in _OURS:
        return [_message(path, error.message)]
    # jsonschema's own messages quote the value, which may be a secret.
    return [_message(path, f"must fit {error.validator} {json.dumps(demand, ensure_ascii=False, default=str)}")]


def _message(path: str, fault: str) -> str:
    return visible_lines(f"{path[:_MESSAGE]}: {fault[:_MESSAGE]}")


def parts(schema: object) -> Iterator[dict[str, Any]]:
    """Yield the schema, then every object in it."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)


# These three keywords replace jsonschema's own, so that the linear-time engine matches their patterns. One other keyword matches
# patterns, unevaluatedProperties, and only beside patternProperties: `_validator` refuses that combination.


def match_pattern(_validator: Any, pattern: str, value: object, _schema: Any) -> Iterator[ValidationError]:
    """Yield the error of the keyword `pattern`."""
    if isinstance(value, str) and not _matches(pattern, value):
        yield ValidationError(f"must match the pattern {pattern}")


def pattern_properties(validator: Any, by_pattern: Any, value: object, _schema: Any) -> Iterator[ValidationError]:
    """Yield the errors of the keyword `patternProperties`."""
    if not isinstance(value, dict):
        return
    for pattern, subschema in by_pattern.items():
        for name, field in value.items():
            if _matches(pattern, name):
                yield from validator.descend(field, subschema, path=name, schema_path=pattern)


def additional_properties(validator: Any, schema_or_false: Any, value: object, schema: Any) -> Iterator[ValidationError]:
    """Yield the errors of the keyword `additionalProperties`."""
    if not isinstance(value, dict):
        return
    by_pattern = schema.get("patternProperties", {})
    for name, field in value.items():
        if name in schema.get("properties", {}) or any(_matches(pattern, name) for pattern in by_pattern):
            continue
        if schema_or_false is False:
            yield ValidationError(f"{name} is not a field of this tool")
        else:
            yield from validator.descend(field, schema_or_false, path=name)


def _unique_items(_validator: Any, unique: Any, value: object, _schema: Any) -> Iterator[ValidationError]:
    """Yield the error of the keyword `uniqueItems`. Equal JSON values, such as 1 and 1.0, have one canonical text."""
    texts: set[str] = set()
    for item in value if unique is True and isinstance(value, list) else ():
        check_time()
        text = canonical_text(item)
        if text in texts:
            yield ValidationError("must have no item twice")
            return
        texts.add(text)


def _in_time(keyword: Any) -> Any:
    """Wrap a keyword so that it raises `TooSlow` when the time is used up: a few `$ref`s can ask for endless steps."""

    def check(*args: Any) -> Any:
        check_time()
        return keyword(*args)

    return check


_Validator = validator_class(
    {
        **Draft202012Validator.VALIDATORS,
        "pattern": match_pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
    }
)
