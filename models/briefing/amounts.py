"""Amounts: the numbers in which two inputs of one tool differ that are equal otherwise."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Amount(NamedTuple):
    """A number of an input, and the number of another input in its place."""

    name: str
    """The argument's name; of a number within an argument: the names on the way to it, with dots between."""
    value: int | float
    other: int | float


def differing_amounts(arguments: Mapping[str, Any], others: Mapping[str, Any]) -> list[Amount]:
    """Return the numbers that differ, if nothing else does and a text is equal; empty otherwise.

    Without an equal text, such as an order's name, nothing says that both calls are about the same thing. A number whose name ends
    in `id` is no amount: it names a thing.
    """
    amounts: list[Amount] = []
    has_text = _compare(arguments, others, "", amounts)
    return amounts if has_text and not any(amount.name.lower().endswith("id") for amount in amounts) else []


def _compare(value: Any, other: Any, name: str, amounts: list[Amount]) -> bool | None:
    """Add the numbers that differ. Returns True if a text is equal, False if there is none, and None if anything else differs."""
    if isinstance(value, Mapping) and isinstance(other, Mapping) and value.keys() == other.keys():
        parts = [_compare(value[key], other[key], f"{name}.{key}".lstrip("."), amounts) for key in value]
        return None if None in parts else any(parts)
    if _is_number(value) and _is_number(other):
        if value != other:
            amounts.append(Amount(name, value, other))
        return False
    if type(value) is not type(other) or value != other:
        return None
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
