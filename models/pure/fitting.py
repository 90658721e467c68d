"""Whether an input fits a tool's JSON Schema (Draft 2020-12), and in words which field does not.

Schemas come from clients and inputs from models: together they must not stop a process. Patterns are matched by a linear-time
engine, and the rest has a quarter of a second of its own thread's work: a machine that stands still is not the schema's fault.
"""

import json
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

import referencing
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from models.pure.regex import InvalidPattern, compile_schema_pattern
from models.pure.visible import visible

_ERRORS = 3
_MESSAGE = 300
_SECONDS = 0.25
"""For one input, of CPU: meanwhile hundreds of turns of the same process wait."""
_KEPT_CHARACTERS = 4000
"""A validator takes twenty times its schema: longer ones are made each time."""
_deadline: ContextVar[float] = ContextVar("deadline")
_OURS = frozenset({"pattern", "patternProperties", "additionalProperties"})
"""Keywords whose words are ours."""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class _TooSlow(Exception):
    """The time is over."""


def misfit(schema: dict[str, Any], value: object) -> str | None:
    """None if the input fits, else the first errors, each naming its field: `input.path: must be string, not integer`.

    A schema that is itself wrong, endless or points outside itself is an error too; nothing is ever fetched.
    """
    _deadline.set(time.thread_time() + _SECONDS)
    try:
        text = json.dumps(schema)
        validator = _kept_validator(text) if len(text) <= _KEPT_CHARACTERS else _validator(schema)
        if validator is None:
            return "input: the tool's schema cannot be used (unevaluatedProperties beside patternProperties)"
        errors = list(islice(_distinct(validator.iter_errors(value)), _ERRORS))
    except _TooSlow:
        return "input: the tool's schema takes too long to check"
    except Exception as error:  # noqa: BLE001 - a schema that somebody wrote can fail in any way
        return f"input: the tool's schema cannot be used ({type(error).__name__})"
    return "; ".join(errors) or None


def _validator(schema: dict[str, Any]) -> Any | None:
    """None if some of its words cannot be used beside others."""
    if {"unevaluatedProperties", "patternProperties"} <= _words(schema):
        return None
    # An empty registry: the default one would open any address that a `$ref` names.
    return _Validator(schema, registry=referencing.Registry())


@lru_cache(maxsize=256)
def _kept_validator(schema: str) -> Any | None:
    return _validator(json.loads(schema))


def unusable_pattern(schema: object) -> str | None:
    """The first regular expression in a schema that the engine does not know (it has no look-around and no back-references)."""
    for part in _parts(schema):
        named = part.get("patternProperties")
        for pattern in [part.get("pattern"), *(named if isinstance(named, dict) else ())]:
            if isinstance(pattern, str):
                try:
                    compile_schema_pattern(pattern)
                except InvalidPattern:
                    return pattern
    return None


def _found(pattern: str, text: str) -> bool:
    return compile_schema_pattern(pattern).search(text) is not None


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
    if error.validator in _OURS:
        return [_sentence(where, error.message)]
    # jsonschema's own words quote the value, which may be a secret.
    return [_sentence(where, f"must fit {error.validator} {json.dumps(wanted, ensure_ascii=False, default=str)}")]


def _sentence(where: str, what: str) -> str:
    return visible(f"{where[:_MESSAGE]}: {what[:_MESSAGE]}", lines=True)


def _words(schema: object) -> set[str]:
    """The keys of a schema and of all that is in it."""
    return {word for part in _parts(schema) for word in part}


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    """The objects in a schema, itself first."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)


# The three keywords below are jsonschema's own, but match patterns by the linear-time engine. The one other keyword
# that matches patterns, unevaluatedProperties, does so only beside patternProperties.


def _pattern(_validator: Any, pattern: str, value: object, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _found(pattern, value):
        yield ValidationError(f"must match the pattern {pattern}")


def _pattern_properties(validator: Any, by_pattern: Any, value: object, _schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for pattern, subschema in by_pattern.items():
        for name, field in value.items():
            if _found(pattern, name):
                yield from validator.descend(field, subschema, path=name, schema_path=pattern)


def _additional(validator: Any, wanted: Any, value: object, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    by_pattern = schema.get("patternProperties", {})
    for name, field in value.items():
        if name in schema.get("properties", {}) or any(_found(pattern, name) for pattern in by_pattern):
            continue
        if wanted is False:
            yield ValidationError(f"{name} is not a field of this tool")
        else:
            yield from validator.descend(field, wanted, path=name)


def _in_time(keyword: Any) -> Any:
    """The keyword, for as long as there is time: a few `$ref`s can ask for more steps than there are in a life."""

    def check(*args: Any) -> Any:
        if time.thread_time() > _deadline.get():
            raise _TooSlow
        return keyword(*args)

    return check


_KEYWORDS = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "patternProperties": _pattern_properties}
_KEYWORDS["additionalProperties"] = _additional
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _in_time(keyword) for name, keyword in _KEYWORDS.items()},
)
