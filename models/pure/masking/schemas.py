"""Finds the values that a tool's JSON Schema marks as secret: `writeOnly`, or the format `password`, in any possible branch."""

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft201909Validator, Draft202012Validator, ValidationError

from models.pure.json import fitting

_MARKS = frozenset({"writeOnly", "format"})
Place = tuple[str | int, ...]
"""The names and indexes that lead to a value."""


def secret_places(schema: dict[str, Any] | None, arguments: dict[str, Any]) -> set[Place]:
    """Return the places that the schema marks. A schema that is invalid, endless or takes too long marks every argument."""
    if schema is None or not any(map(_is_marked, fitting.parts(schema))):
        return set()
    try:
        errors = fitting.errors(_Marks(schema, registry=fitting.NOTHING_ELSE), arguments)
        places: set[Place] = {tuple(error.absolute_path) for error in errors if error.validator in _MARKS}
    except Exception:  # noqa: BLE001 - a schema that somebody wrote can fail in any way
        places = {()}
    return {(name,) for name in arguments} if () in places else places


def _is_marked(schema: dict[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


# The keywords of a validator that reports marks as errors. A branch counts whatever its condition. A schema of some of the items
# counts for all of them.


def _mark(_validator: Any, _value: Any, _instance: object, schema: dict[str, Any]) -> Iterator[ValidationError]:
    if _is_marked(schema):
        yield ValidationError("is secret")


def _branch(validator: Any, branch: Any, instance: object, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(branch, dict):
        yield from validator.descend(instance, branch)


def _branches(validator: Any, branches: Any, instance: object, schema: Any) -> Iterator[ValidationError]:
    for branch in branches.values() if isinstance(branches, dict) else branches:
        yield from _branch(validator, branch, instance, schema)


def _items(validator: Any, schemas: Any, instance: object, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        for index, item in enumerate(instance):
            schema = schemas if not isinstance(schemas, list) else schemas[index] if index < len(schemas) else None
            if isinstance(schema, dict):
                yield from validator.descend(item, schema, path=index)


_Marks = fitting.validator_class(
    {
        **dict.fromkeys(_MARKS, _mark),
        **dict.fromkeys(("if", "then", "else", "not"), _branch),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"), _branches),
        **dict.fromkeys(("prefixItems", "items", "additionalItems", "unevaluatedItems", "contains"), _items),
        **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), fitting.additional_properties),
        "patternProperties": fitting.pattern_properties,
        **{name: Draft202012Validator.VALIDATORS[name] for name in ("properties", "$ref", "$dynamicRef")},
        "$recursiveRef": Draft201909Validator.VALIDATORS["$recursiveRef"],
    }
)
