"""Checks a tool's JSON Schema (Draft 2020-12), which a client or a server wrote, in bounded time."""

import json
from collections.abc import Iterator
from typing import Any

import referencing
from jsonschema import Draft202012Validator, ValidationError
from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from models.pure.json.fitting import TooSlow, check_time, errors, match_pattern, parts, unusable_pattern, validator_class

DIALECT: str = Draft202012Validator.META_SCHEMA["$id"]
SCHEMA_BYTES = 65_536
"""Longest schema of a tool, as JSON."""
_PARTS = 10_000
"""Most parts of a schema that one value may be checked against."""


def schema_fault(schema: dict[str, Any]) -> str | None:
    """Return why a tool's schema cannot be used, such as "is not a JSON Schema: ...", or None.

    A schema is small, valid, refers only to itself and not without end, and has patterns that RE2 supports.
    """
    try:
        return next(_faults(schema), None)
    except (RecursionError, Unresolvable):
        return "has a $ref that leads nowhere or back to itself."
    except TooSlow:
        return "takes too long to check; send a simpler schema."


def _faults(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the faults. Raises RecursionError, Unresolvable, TooSlow."""
    if len(json.dumps(schema)) > SCHEMA_BYTES:
        yield f"has more than {SCHEMA_BYTES} bytes as JSON; send a shorter schema."
    if any(not ref.startswith("#") for part in parts(schema) for ref in _refs(part)):
        yield "has a $ref that points outside; point inside the schema, such as to #/$defs/item."
    for error in errors(_Specification(_SPECIFICATION, registry=SPECIFICATIONS), schema):
        yield f"is not a JSON Schema: {error.message[:200]} at {error.json_path[:200]}."
    _follow(schema)
    if pattern := unusable_pattern(schema):
        yield f"has the pattern {pattern[:200]!r}; use a short one without look-around and back-references (RE2's syntax)."


def _refs(part: dict[str, Any]) -> list[str]:
    return [part[name] for name in ("$ref", "$dynamicRef") if isinstance(part.get(name), str)]


def _follow(schema: dict[str, Any]) -> None:
    """Raise Unresolvable for a `$ref` without a target, RecursionError for one that leads back to itself without reading input,
    and TooSlow for a schema that applies very many parts to one value, since references double the parts."""
    resolver = referencing.Registry[Any]().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    open_: set[int] = set()
    counts: dict[int, int] = {}

    def count(part: Any) -> int:
        """Return the number of parts that one value is checked against."""
        if not isinstance(part, dict):
            return 0
        if id(part) in counts:
            return counts[id(part)]
        if id(part) in open_:
            raise RecursionError
        check_time()
        open_.add(id(part))
        inner = [part.get(name) for name in ("not", "if", "then", "else")]
        inner += [one for name in ("allOf", "anyOf", "oneOf") for one in part.get(name) or []]
        inner += (part.get("dependentSchemas") or {}).values()
        if isinstance(part.get("$ref"), str):
            inner.append(resolver.lookup(part["$ref"]).contents)
        counts[id(part)] = 1 + sum(count(one) for one in inner)
        if counts[id(part)] > _PARTS:
            raise TooSlow
        return counts[id(part)]

    for part in parts(schema):
        count(part)


def _specification() -> dict[str, Any]:
    """Return the dialect's own schema, whose vocabularies are one schema: to follow a reference to each took five times as long."""
    whole = Draft202012Validator.META_SCHEMA
    vocabularies = [SPECIFICATIONS.contents(DIALECT.removesuffix("schema") + part["$ref"]) for part in whole["allOf"]]
    properties = {name: part for vocabulary in (*vocabularies, whole) for name, part in vocabulary["properties"].items()}
    definitions = {name: part for vocabulary in vocabularies for name, part in vocabulary.get("$defs", {}).items()}
    return {"$id": DIALECT, "type": whole["type"], "properties": properties, "$defs": definitions}


_SPECIFICATION = _specification()


def _properties(validator: Any, properties: Any, value: object, _schema: Any) -> Iterator[ValidationError]:
    """Yield the errors of the keyword `properties`, in time that depends on the value alone."""
    for name, field in value.items() if isinstance(value, dict) else ():
        if name in properties:
            yield from validator.descend(field, properties[name], path=name, schema_path=name)


def _subschema(validator: Any, _anchor: str, value: object, _schema: Any) -> Iterator[ValidationError]:
    """Yield the errors of the specification's only `$dynamicRef`: each subschema is a schema."""
    yield from validator.descend(value, _SPECIFICATION)


_IN_SPECIFICATION = (
    *("$ref", "type", "enum", "pattern", "items", "minItems", "uniqueItems", "additionalProperties", "propertyNames"),
    *("minimum", "exclusiveMinimum", "anyOf"),
)
_Specification = validator_class(
    {name: Draft202012Validator.VALIDATORS[name] for name in _IN_SPECIFICATION}
    | {"pattern": match_pattern, "properties": _properties, "$dynamicRef": _subschema}
)
