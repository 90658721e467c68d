"""Checks an input against a tool's JSON Schema (Draft 2020-12), and names the fields that do not fit.

Schemas come from clients and inputs from models. Together they must not stop a process, in which hundreds of other turns run. So
RE2, which takes linear time, matches the patterns, and a check may take a quarter of a second of its thread's CPU. `jsonschema`
offers neither, so this module extends its keywords, by its public `extend`. `jsonschema-rs` matches in linear time but has no time
limit: a chain of `$ref` makes it hold the GIL without end. `tests/tools/test_a_schema_costs_no_more_than_its_turn.py` holds the
limits, and fails when `jsonschema` no longer matches by backtracking.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

import re2
import referencing
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from models.pure.prompting import visible

_ERRORS = 3
_MESSAGE = 300
_SECONDS = 0.25
"""CPU time for one input."""
_KEPT_CHARACTERS = 4000
"""Validators of longer schemas are not kept: a validator takes twenty times the memory of its schema."""
_deadline: ContextVar[float] = ContextVar("deadline")
_OWN = frozenset({"pattern", "patternProperties", "additionalProperties"})
"""Keywords whose messages come from this module."""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class _TooSlow(Exception):
    """The check exceeded its time."""


def misfit(schema: dict[str, Any], value: object) -> str | None:
    """None if the input fits, else the first errors with their fields: `input.path: must be string, not integer`.

    A schema that is malformed, endless or refers to another document is an error too. Nothing is ever fetched.
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
    except Exception as error:  # noqa: BLE001 - a malformed schema raises any kind of exception
        return f"input: the tool's schema cannot be used ({type(error).__name__})"
    return "; ".join(errors) or None


def _validator(schema: dict[str, Any]) -> Any | None:
    """A validator. None if the schema combines keywords that cannot be combined here."""
    if {"unevaluatedProperties", "patternProperties"} <= _keys(schema):
        return None
    # An empty registry: the default one opens the address of a `$ref`.
    return _Validator(schema, registry=referencing.Registry())


@lru_cache(maxsize=256)
def _kept_validator(schema: str) -> Any | None:
    return _validator(json.loads(schema))


def unusable_pattern(schema: object) -> str | None:
    """The first pattern in a schema that RE2 does not accept, such as look-around and back-references; None if there is none."""
    for part in _parts(schema):
        named = part.get("patternProperties")
        for pattern in [part.get("pattern"), *(named if isinstance(named, dict) else ())]:
            if isinstance(pattern, str):
                try:
                    _compiled(pattern)
                except re2.error:
                    return pattern
    return None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """The compiled pattern. JSON Schema has JavaScript's syntax, which spells characters by number in another way."""
    return re2.compile(re.sub(r"\\u([0-9a-fA-F]{4})", r"\\x{\1}", pattern), _quiet())


def _quiet() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


def _matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


def _distinct(errors: Iterable[ValidationError]) -> Iterator[str]:
    seen: set[str] = set()
    for error in errors:
        for text in _sentences(error):
            if text not in seen:
                seen.add(text)
                yield text


def _sentences(error: ValidationError) -> list[str]:
    where = "input" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    value: Any = error.instance
    required: Any = error.validator_value
    if error.validator == "required":
        return [_sentence(f"{where}.{name}", "is required") for name in required if name not in value]
    if error.validator == "type":
        types = " or ".join(required) if isinstance(required, list) else required
        return [_sentence(where, f"must be {types}, not {_TYPES.get(type(value), 'null')}")]
    if error.validator in _OWN:
        return [_sentence(where, error.message)]
    # jsonschema's own message quotes the value, which may be a secret.
    return [_sentence(where, f"must fit {error.validator} {json.dumps(required, ensure_ascii=False, default=str)}")]


def _sentence(where: str, problem: str) -> str:
    return visible(f"{where[:_MESSAGE]}: {problem[:_MESSAGE]}")


def _keys(schema: object) -> set[str]:
    """The keys of all objects in a schema."""
    return {key for part in _parts(schema) for key in part}


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    """All objects in a schema, beginning with the schema."""
    rest = [schema]
    while rest:
        part = rest.pop()
        if isinstance(part, dict):
            yield part
            rest.extend(part.values())
        elif isinstance(part, list):
            rest.extend(part)


# The three keywords below are jsonschema's, but use RE2. The one other keyword that matches patterns, unevaluatedProperties, does
# so only beside patternProperties.


def _pattern(_validator: Any, pattern: str, value: object, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield ValidationError(f"must match the pattern {pattern}")


def _pattern_properties(validator: Any, by_pattern: Any, value: object, _schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for pattern, subschema in by_pattern.items():
        for name, field in value.items():
            if _matches(pattern, name):
                yield from validator.descend(field, subschema, path=name, schema_path=pattern)


def _additional(validator: Any, subschema: Any, value: object, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    by_pattern = schema.get("patternProperties", {})
    for name, field in value.items():
        if name in schema.get("properties", {}) or any(_matches(pattern, name) for pattern in by_pattern):
            continue
        if subschema is False:
            yield ValidationError(f"{name} is not a field of this tool")
        else:
            yield from validator.descend(field, subschema, path=name)


def _in_time(keyword: Any) -> Any:
    """The keyword with the time limit: a few `$ref`s can ask for an exponential number of steps."""

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
