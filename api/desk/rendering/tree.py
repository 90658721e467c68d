"""A call's arguments as a tree that a person reads."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from models.pure.text.visible import visible_lines


@dataclass(frozen=True)
class Node:
    """One value: a leaf with its text, or a branch with children."""

    name: str | None
    """The field's name or, in a list, the number from 1; None for the root."""
    kind: str
    """`text`, `number`, `boolean`, `null`, `object` or `list`."""
    text: str = ""
    """Of a leaf. Every character that a screen would hide is an escape. A text that reads like another value, or like nothing, is
    quoted: `"5"`, `"true"`, `""`."""
    children: tuple["Node", ...] = ()

    @property
    def is_block(self) -> bool:
        """True for a text of several lines, or one that is too long for a line."""
        return self.kind == "text" and ("\n" in self.text or len(self.text) > 120)


def tree(value: Any, name: str | None = None) -> Node:
    """Return the tree of a JSON value. Names and texts are whole, with every character visible."""
    label = None if name is None else visible_lines(name)
    match value:
        case dict():
            return Node(label, "object", children=_children((key, item) for key, item in value.items()))
        case list():
            return Node(label, "list", children=_children((str(i), item) for i, item in enumerate(value, 1)))
        case str():
            return Node(label, "text", _text(visible_lines(value)))
        case bool():
            return Node(label, "boolean", "true" if value else "false")
        case None:
            return Node(label, "null", "null")
        case _:
            return Node(label, "number", json.dumps(value))


def _children(items: Iterable[tuple[str, Any]]) -> tuple[Node, ...]:
    return tuple(tree(item, name) for name, item in items)


def _text(text: str) -> str:
    """Return the text, quoted if it reads like a number, another JSON value, or nothing."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text if text.strip() else json.dumps(text)
    return text if "\n" in text else json.dumps(text, ensure_ascii=False)
