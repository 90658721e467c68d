"""Checks a tool's input against its JSON Schema (Draft 2020-12) and says in words which field is wrong."""

import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from itertools import islice
from typing import Any

import referencing
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from workers.tools import clean, patterns

_ERRORS = 3
_MESSAGE = 300
_SECONDS = 0.25
"""For one input: meanwhile hundreds of turns of the same process wait."""
_deadline: ContextVar[float] = ContextVar("deadline")
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def validate(schema: dict[str, Any], value: object) -> str | None:
    """None if the input fits, else the first errors, each naming its field: `input.path: must be string, not integer`.

    A schema that is itself wrong, endless or points outside itself is an error too; nothing is ever fetched.
    """
    if {"unevaluatedProperties", "patternProperties"} <= _words(schema):
        return "input: the tool's schema cannot be used (unevaluatedProperties beside patternProperties)"
    _deadline.set(time.monotonic() + _SECONDS)
    # An empty registry: the default one would open any address that a `$ref` names.
    validator = _Validator(schema, registry=referencing.Registry())
    try:
        errors = list(islice(_distinct(validator.iter_errors(value)), _ERRORS))
    except patterns.TooSlow:
        return "input: the tool's schema takes too long to check"
    except Exception as error:  # noqa: BLE001 - a schema that somebody wrote can fail in any way
        return f"input: the tool's schema cannot be used ({type(error).__name__})"
    return "; ".join(errors) or None


def _distinct(errors: Iterable[ValidationError]) -> Iterator[str]:
    seen: set[str] = set()
    for error in errors:
        for text in _sentences(error):
            if text not in seen:
                seen.add(text)
                yield text


def _sentences(error: ValidationError) -> list[str]:
    where = "input" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    found: Any = error.instance
    wanted: Any = error.validator_value
    if error.validator == "required":
        return [_sentence(f"{where}.{name}", "is required") for name in wanted if name not in found]
    if error.validator == "type":
        types = " or ".join(wanted) if isinstance(wanted, list) else wanted
        return [_sentence(where, f"must be {types}, not {_TYPES.get(type(found), 'null')}")]
    return [_sentence(where, error.message)]


def _sentence(where: str, what: str) -> str:
    return clean.visible(f"{where[:_MESSAGE]}: {what[:_MESSAGE]}")


def _words(schema: object) -> set[str]:
    """The keys of a schema and of all that is in it."""
    words: set[str] = set()
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            words.update(part)
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)
    return words


# The three keywords below are jsonschema's own, but match patterns by way of `patterns`. The one other keyword that
# matches patterns, unevaluatedProperties, does so only beside patternProperties.


def _pattern(_validator: Any, pattern: str, value: object, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not patterns.found(pattern, value):
        yield ValidationError(f"must match the pattern {pattern}")


def _pattern_properties(validator: Any, by_pattern: Any, value: object, _schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for pattern, subschema in by_pattern.items():
        for name, field in value.items():
            if patterns.found(pattern, name):
                yield from validator.descend(field, subschema, path=name, schema_path=pattern)


def _additional(validator: Any, wanted: Any, value: object, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    by_pattern = schema.get("patternProperties", {})
    for name, field in value.items():
        if name in schema.get("properties", {}) or any(patterns.found(pattern, name) for pattern in by_pattern):
            continue
        if wanted is False:
            yield ValidationError(f"{name} is not a field of this tool")
        else:
            yield from validator.descend(field, wanted, path=name)


def _in_time(keyword: Any) -> Any:
    """The keyword, for as long as there is time: a few `$ref`s can ask for more steps than there are in a life."""

    def check(*args: Any) -> Any:
        if time.monotonic() > _deadline.get():
            raise patterns.TooSlow
        return keyword(*args)

    return check


_KEYWORDS = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "patternProperties": _pattern_properties}
_KEYWORDS["additionalProperties"] = _additional
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _in_time(keyword) for name, keyword in _KEYWORDS.items()},
)
