"""Checks the JSON Schemas of client tools: each is valid, refers only to itself, and has no endless references."""

from collections.abc import Iterator
from typing import Annotated, Any

from jsonschema import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from pydantic import AfterValidator
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from models.pure.fitting import unusable_pattern

_UNKNOWN: Any = None


def _input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that is safe to validate inputs with. Raises ValueError for a schema that is invalid, refers outside itself
    or refers to itself without end."""
    if schema.get("type") != "object":
        raise ValueError('must have "type": "object".')
    if any(isinstance(ref, str) and not ref.startswith("#") for ref in _refs(schema)):
        raise ValueError("$ref may only point inside the schema, such as #/$defs/item.")
    dialect = schema.get("$schema", Draft202012Validator.META_SCHEMA["$schema"])
    checker: Any = validator_for({"$schema": dialect}, default=_UNKNOWN) if isinstance(dialect, str) else _UNKNOWN
    if checker is _UNKNOWN:
        raise ValueError(f"$schema names no known dialect; leave it out for {Draft202012Validator.META_SCHEMA['$schema']}.")
    try:
        checker.check_schema(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        _follow(schema)
    except SchemaError as error:
        raise ValueError(f"is not a JSON Schema: {error.message[:200]} at {error.json_path}.") from None
    except (RecursionError, Unresolvable):
        raise ValueError("has a $ref that leads nowhere or back to itself.") from None
    if pattern := unusable_pattern(schema):
        raise ValueError(f"has the pattern {pattern[:200]!r}; use one without look-around and back-references (RE2's syntax).")
    return schema


def _follow(schema: dict[str, Any]) -> None:
    """Raise Unresolvable for a `$ref` without a target, RecursionError for one that leads back to itself without reading input.

    No input is validated here, which could take for ever: `models.pure.fitting` validates under a time limit.
    """
    resolver = Registry[Any]().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    open_: set[int] = set()
    done: set[int] = set()

    def visit(part: Any) -> None:
        if not isinstance(part, dict) or id(part) in done:
            return
        if id(part) in open_:
            raise RecursionError
        open_.add(id(part))
        if isinstance(part.get("$ref"), str):
            visit(resolver.lookup(part["$ref"]).contents)
        for inner in [part.get(name) for name in ("not", "if", "then", "else")]:
            visit(inner)
        for inner in [inner for name in ("allOf", "anyOf", "oneOf") for inner in part.get(name) or []]:
            visit(inner)
        done.add(id(part))

    for part in _parts(schema):
        visit(part)


def _parts(schema: Any) -> Iterator[Any]:
    yield schema
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for part in inner:
        yield from _parts(part)


def _refs(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return [ref for item in schema for ref in _refs(item)]
    if not isinstance(schema, dict):
        return []
    here = [schema[name] for name in ("$ref", "$dynamicRef") if name in schema]
    return here + [ref for item in schema.values() for ref in _refs(item)]


InputSchema = Annotated[dict[str, Any], AfterValidator(_input_schema)]
