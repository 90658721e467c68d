"""A call's arguments as a tree that a person reads."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from models.pure.text.visible import visible, visible_lines

_MOST_COLUMNS = 4
_MOST_TITLE = 80
"""Most characters of a field's title."""


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
    title: str = ""
    """The title that the tool's schema gives the field; empty without one."""

    @property
    def is_empty(self) -> bool:
        """True for null, an empty text, and an object or a list without content."""
        return self.kind == "null" or (self.kind == "text" and self.text == '""') or (self.is_branch and not self.children)

    @property
    def is_branch(self) -> bool:
        """True for an object or a list."""
        return self.kind in {"object", "list"}

    @property
    def fields(self) -> tuple["Node", ...]:
        """The children to show each in a line: all of a list, and those of an object that are not empty."""
        return self.children if self.kind == "list" else tuple(child for child in self.children if not child.is_empty)

    @property
    def empty_fields(self) -> tuple["Node", ...]:
        """The other children, which one line shows together."""
        return tuple(child for child in self.children if child.is_empty) if self.kind == "object" else ()

    @property
    def empty_text(self) -> str:
        """An empty value in one line: `null`, `""`, `{}` or `[]`."""
        return {"object": "{}", "list": "[]"}.get(self.kind, self.text)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, of a list of objects that fits into a table; none for anything else."""
        rows = [child.children for child in self.children if child.kind == "object"]
        if self.kind != "list" or len(rows) < 2 or len(rows) < len(self.children):
            return ()
        names = tuple(cell.name or "" for cell in rows[0])
        fits = all(tuple(cell.name for cell in row) == names for row in rows)
        is_short = not any(cell.is_branch or cell.is_block for row in rows for cell in row)
        return names if fits and is_short and 1 < len(names) <= _MOST_COLUMNS else ()

    @property
    def is_block(self) -> bool:
        """True for a text of several lines, or one that is too long for a line."""
        return self.kind == "text" and ("\n" in self.text or len(self.text) > 120)


def tree(value: Any, name: str | None = None, schema: Any = None) -> Node:
    """Return the tree of a JSON value. Names and texts are whole, with every character visible.

    `schema`: the value's JSON Schema, which gives the order of fields and their titles.
    """
    label = None if name is None else visible_lines(name)
    schema = schema if isinstance(schema, Mapping) else {}
    title = _title(schema, name)
    match value:
        case dict():
            return Node(label, "object", children=tuple(_fields(value, schema)), title=title)
        case list():
            items = (tree(item, str(i), schema.get("items")) for i, item in enumerate(value, 1))
            return Node(label, "list", children=tuple(items), title=title)
        case str():
            return Node(label, "text", _text(visible_lines(value)), title=title)
        case bool():
            return Node(label, "boolean", "true" if value else "false", title=title)
        case None:
            return Node(label, "null", "null", title=title)
        case _:
            return Node(label, "number", json.dumps(value), title=title)


def _fields(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterable[Node]:
    """Yield an object's fields in the order of the schema's properties, then the others by name: rows do not keep their order."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    for name in dict.fromkeys([*(name for name in properties if name in value), *sorted(value)]):
        yield tree(value[name], name, properties.get(name))


def _title(schema: Mapping[str, Any], name: str | None) -> str:
    """Return the schema's title for a field, in one line; empty if it says no more than the field's name."""
    title = schema.get("title")
    if name is None or not isinstance(title, str) or len(title) > _MOST_TITLE:
        return ""
    return "" if _plain(title) == _plain(name) else visible(title)


def _plain(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _text(text: str) -> str:
    """Return the text, quoted if it reads like a number, another JSON value, or nothing."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text if text.strip() else json.dumps(text)
    return text if "\n" in text else json.dumps(text, ensure_ascii=False)
