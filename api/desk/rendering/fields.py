"""Forms from JSON Schema: the fields to fill in, and the values that a person put into them.

A text is a text field and an `enum` a choice. Any other value (an object, a list of objects, a text with hidden characters) is
edited as JSON. An optional field that is left empty is left out of the value.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from api.door import parsing
from models.errors import Invalid
from models.pure.text.visible import visible, visible_lines


class Submitted(Protocol):
    """A submitted form, as werkzeug gives it."""

    def get(self, key: str) -> str | None:
        """The first value under this name."""
        ...

    def getlist(self, key: str) -> list[str]:
        """All values under this name."""
        ...


MISSING = object()
_MOST_DIGITS = 6
"""Of an option's index."""


@dataclass(frozen=True)
class Field:
    """One field of a form."""

    name: str
    control: str
    """The name of its control in the form."""
    label: str
    kind: str
    """`text`, `lines`, `number`, `choice`, `choices` or `json`."""
    required: bool
    hint: str = ""
    value: Any = MISSING
    """The value that the form starts from; MISSING if there is none."""
    options: Sequence[tuple[Any, str]] = ()
    """Of a choice: the values and their labels."""
    whole: bool = False
    """Of a number: True if it must be an integer."""
    typed: str | None = None
    """The text that a person typed, in a form that is shown again."""

    @property
    def text(self) -> str:
        """The text that the control holds at first."""
        if self.typed is not None:
            return self.typed
        if self.value is MISSING:
            return ""
        return str(self.value) if self.kind in {"text", "lines"} else pretty(self.value)

    @property
    def has_value(self) -> bool:
        """True if the form starts from a value."""
        return self.value is not MISSING

    def holds(self, option: Any) -> bool:
        """True if this option is chosen at first."""
        values = self.value if self.kind == "choices" and isinstance(self.value, list) else [self.value]
        return any(same(option, value) for value in values)


@dataclass
class Filled:
    """The values of a submitted form."""

    values: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    """Each field's fault, by the name of its control."""


def fields(schema: Mapping[str, Any], values: Mapping[str, Any], prefix: str) -> list[Field]:
    """Return the fields for an object of this schema, in its order, then for fields that it does not name.

    `values` is the object that the form starts from.

    `prefix` begins the names of the controls, so that several forms fit into one page.
    """
    parts = schema.get("properties") if isinstance(schema.get("properties"), dict) else {}
    assert isinstance(parts, dict)
    required_names = [name for name in schema.get("required") or [] if name in parts]
    names = [*parts, *sorted(name for name in values if name not in parts)]
    return [_field(name, parts.get(name), values.get(name, MISSING), name in required_names, prefix) for name in names]


def read(form: Submitted, into: Sequence[Field]) -> Filled:
    """Return the values of the submitted form, with a fault for each field that cannot be read. The caller checks the schema."""
    filled = Filled()
    for one in into:
        try:
            value = _read(form, one)
        except ValueError as error:
            filled.faults[one.control] = str(error)
            continue
        if value is not MISSING:
            filled.values[one.name] = value
        elif one.required:
            filled.faults[one.control] = "This is needed."
    return filled


def refilled(into: Sequence[Field], form: Submitted) -> list[Field]:
    """Return the fields with the values that a person entered, for a form that is shown again."""
    result = []
    for one in into:
        typed = form.get(one.control)
        if one.kind in {"choice", "choices"}:
            with suppress(ValueError):
                one = replace(one, value=_read(form, one))  # noqa: PLW2901 - the same field, filled in
        elif typed is not None:
            one = replace(one, typed=typed.replace("\r\n", "\n"))  # noqa: PLW2901
        result.append(one)
    return result


def loads(text: str) -> Any:
    """Parse JSON that a person typed, within the limits of a body. Raises ValueError, with the place of the fault."""
    try:
        return parsing.json_value(text.encode())
    except Invalid as refusal:
        raise ValueError(str(refusal).removeprefix("body: ")) from None


def pretty(value: Any) -> str:
    """Return a JSON value as indented text to edit: hidden characters are escapes of JSON."""
    # The codecs in C: the standard library indents in Python, with a frame per level for each value.
    raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    lines = msgspec.json.format(raw, indent=2).decode("utf-8", "surrogatepass").split("\n")
    return "\n".join(line if visible(line) == line else _with_escapes(line) for line in lines)


def _with_escapes(line: str) -> str:
    return "".join(c if visible(c) == c else json.dumps(c)[1:-1] for c in line)


def same(one: Any, other: Any) -> bool:
    """True if two JSON values are equal; unlike in Python, 1 and true differ."""
    return type(one) is type(other) and bool(one == other)


def _field(name: str, schema: Any, value: Any, required: bool, prefix: str) -> Field:
    schema = schema if isinstance(schema, dict) else {}
    if value is MISSING:
        value = schema.get("default", MISSING)
    kind, options = _kind(schema, value)
    hint = schema.get("description")
    return Field(
        name=name,
        control=f"{prefix}.{name}",
        label=str(schema.get("title") or name),
        kind=kind,
        required=required,
        hint=hint if isinstance(hint, str) else "",
        value=value,
        options=options,
        whole=schema.get("type") == "integer",
    )


def _kind(schema: dict[str, Any], value: Any) -> tuple[str, list[tuple[Any, str]]]:
    """Return the kind of the field, and its options. A start value of another type than the schema's is edited as JSON."""
    kinds = schema.get("type")
    types = {kinds} if isinstance(kinds, str) else {kind for kind in kinds or () if kind != "null"}
    is_new = value is MISSING
    items = schema.get("items")
    if options := _options(schema):
        return "choice", options
    if types == {"boolean"} and (is_new or isinstance(value, bool)):
        return "choice", [(True, "true"), (False, "false")]
    if types == {"array"} and isinstance(items, dict) and (options := _options(items)):
        return "choices", options
    if types == {"string"} and (is_new or isinstance(value, str)):
        return _kind_of_text("" if is_new else value), []
    is_number = bool(types) and types <= {"integer", "number"} and (is_new or _is_number(value))
    return "number" if is_number else "json", []


def _kind_of_text(text: str) -> str:
    if visible_lines(text) != text:
        return "json"
    return "lines" if "\n" in text or len(text) > 60 else "text"


def _options(schema: dict[str, Any]) -> list[tuple[Any, str]]:
    if isinstance(values := schema.get("enum"), list):
        names = schema.get("enumNames") or []
        return [(value, str(names[i]) if i < len(names) else _label(value)) for i, value in enumerate(values)]
    several = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(several, list) and several and all(isinstance(one, dict) and "const" in one for one in several):
        return [(one["const"], str(one.get("title") or _label(one["const"]))) for one in several]
    return []


def _label(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read(form: Submitted, one: Field) -> Any:
    if one.kind == "choices":
        options = [_option(one, index) for index in form.getlist(one.control)]
        return options if options or one.has_value or one.required else MISSING
    # A browser sends every line end of a text area as CR LF.
    text = (form.get(one.control) or "").replace("\r\n", "\n")
    if one.kind in {"text", "lines"}:
        if one.has_value and text == one.value.replace("\r\n", "\n"):
            return one.value
        return text or MISSING
    return _read_value(text, one) if text.strip() else MISSING


def _read_value(text: str, one: Field) -> Any:
    if one.kind == "choice":
        return _option(one, text)
    return _number(text, one) if one.kind == "number" else loads(text)


def _number(text: str, one: Field) -> float:
    fault = "Write a whole number, such as 12." if one.whole else "Write a number, such as 12.5."
    try:
        value = loads(text)
    except ValueError:
        raise ValueError(fault) from None
    if not _is_number(value) or (one.whole and int(value) != value):
        raise ValueError(fault)
    number: float = value
    return number


def _option(one: Field, index: str) -> Any:
    is_number = index.isascii() and index.isdecimal() and len(index) <= _MOST_DIGITS
    if not is_number or int(index) >= len(one.options):
        raise ValueError("Choose one of these.")
    return one.options[int(index)][0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
