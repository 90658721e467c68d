"""The order of a schema's properties, which jsonb does not keep: written down beside the schema, and restored for people.

{"": ["order_id", "amount"], "/amount": ["cents", "currency"]}      by JSON Pointer to the value, `-` for each item of a list
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Order = Mapping[str, Iterable[str]]
_DEPTH = 8
_LONG = frozenset({"object", "array"})


def order_of(schema: Any) -> dict[str, list[str]]:
    """Return the order of the properties in a schema and in those within it, down to a bounded depth."""
    return {path: list(properties) for path, properties in _objects(schema, "", 0) if len(properties) > 1}


def order_field(schema: Any) -> dict[str, Any]:
    """Return the field `property_order` of a tool with this schema; empty if the schema has nothing to order."""
    order = order_of(schema)
    return {"property_order": order} if order else {}


def in_order(schema: Any, order: Order) -> Any:
    """Return a copy of a schema with its properties in this order, and where it does not say, required ones first, in the order of
    `required`, then short ones, then objects and lists."""
    return _ordered(schema, order, "", 0)


def _objects(schema: Any, path: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        yield path, properties
        for name, part in properties.items():
            yield from _objects(part, f"{path}/{name}", depth + 1)
    yield from _objects(schema.get("items"), f"{path}/-", depth + 1)


def _ordered(schema: Any, order: Order, path: str, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return schema
    result = dict(schema)
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        names = order.get(path) or _by_need(schema, properties)
        every = dict.fromkeys([*(name for name in names if name in properties), *properties])
        result["properties"] = {name: _ordered(properties[name], order, f"{path}/{name}", depth + 1) for name in every}
    if "items" in result:
        result["items"] = _ordered(result["items"], order, f"{path}/-", depth + 1)
    return result


def _by_need(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    first = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return [*first, *sorted(properties, key=lambda name: _is_long(properties[name]))]


def _is_long(schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return isinstance(kind, str) and kind in _LONG
