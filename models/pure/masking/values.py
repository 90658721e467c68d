"""Masks a call's arguments, for people and logs."""

from dataclasses import dataclass, field
from typing import Any

from models.pure.masking.echoes import LEAST, texts_in
from models.pure.masking.names import is_secret
from models.pure.masking.schemas import Marks, marks_of
from models.pure.masking.texts import MARKER, Reader, suspects


@dataclass(frozen=True)
class Masked:
    """Arguments with their secrets masked."""

    shown: dict[str, Any]
    paths: tuple[str, ...]
    """JSON Pointers into `shown` of the masked values and keys; sorted."""
    hidden: tuple[str, ...] = field(default=(), compare=False)
    """The texts behind the markers, for `Echoes`. Short ones are left out. A number is given by its digits."""


def mask(arguments: dict[str, Any], schema: dict[str, Any] | None = None) -> Masked:
    """Return a copy of the arguments with every secret replaced by the marker. Masking it again changes nothing.

    `schema` is the tool's. A schema masks any value as a whole; a name masks all values but booleans and null; in texts, and in
    names of fields, only the secret is masked. If two names in an object have the same masked form, the second one is numbered.
    """
    return _Mask(arguments, schema).done()


_Task = tuple[Any, Any, "Marks | None", "_Path | None"]
_Path = tuple["_Path | None", str | int]
_CONTAINERS = (dict, list)


class _Mask:
    """Masks one value, without recursion, so that its depth does not matter."""

    def __init__(self, arguments: dict[str, Any], schema: dict[str, Any] | None) -> None:
        self._suspects = suspects(_texts(arguments))
        self._reader = Reader()
        self._paths: set[str] = set()
        self._hidden: set[str] = set()
        self._shown: dict[str, Any] = {}
        self._todo: list[_Task] = [(arguments, self._shown, marks_of(schema), None)]

    def done(self) -> Masked:
        while self._todo:
            value, shown, marks, path = self._todo.pop()
            if isinstance(value, dict):
                self._fill_object(value, shown, marks, path)
            else:
                self._fill_array(value, shown, marks, path)
        hidden = (text for text in self._hidden if len(text) >= LEAST and MARKER not in text)
        return Masked(self._shown, tuple(sorted(self._paths)), tuple(sorted(hidden)))

    def _fill_object(self, value: dict[str, Any], shown: dict[str, Any], marks: Marks | None, path: _Path | None) -> None:
        names = {} if self._suspects.isdisjoint(value) else shown_names(value, self._reader)
        all_secret = marks is not None and marks.secret  # true only for the arguments as a whole: nested secrets end in _place
        for name, item in value.items():
            below = marks.property(name) if marks else None
            as_shown = names.get(name, name)
            secret = all_secret or (below is not None and below.secret) or _by_name(name, item, value)
            shown[as_shown] = self._place(item, secret, below, (path, as_shown))
            if as_shown != name:
                self._paths.add(_pointer((path, as_shown)))
                self._hidden.update(self._reader.read(name).hidden)

    def _fill_array(self, value: list[Any], shown: list[Any], marks: Marks | None, path: _Path | None) -> None:
        after_flag = False
        for index, item in enumerate(value):
            below = marks.item(index) if marks else None
            secret = (below is not None and below.secret) or (after_flag and isinstance(item, str) and not item.startswith("-"))
            shown.append(self._place(item, secret, below, (path, index)))
            after_flag = isinstance(item, str) and item.startswith("-") and _is_flag(item)

    def _place(self, value: Any, secret: bool, marks: Marks | None, path: _Path) -> Any:
        shown: Any = value
        if secret:
            shown = MARKER
            self._hidden.update(texts_in(value))
        elif isinstance(value, str):
            if value in self._suspects:
                reading = self._reader.read(value)
                shown = reading.shown
                self._hidden.update(reading.hidden)
        elif isinstance(value, _CONTAINERS):
            shown = {} if isinstance(value, dict) else []
            self._todo.append((value, shown, marks, path))
            return shown
        if shown is not value and shown != value:
            self._paths.add(_pointer(path))
        return shown


def shown_names(value: dict[str, Any], reader: Reader) -> dict[str, str]:
    """Return the masked form of each name of an object's fields that needs one. The order of the fields does not matter."""
    changed = {name: shown for name in suspects(value) if (shown := reader.read(name).shown) != name}
    names: dict[str, str] = {}
    taken = value.keys() - changed.keys()
    numbers: dict[str, int] = {}
    for name in sorted(changed):
        shown = changed[name]
        while shown in taken:
            numbers[changed[name]] = numbers.get(changed[name], 1) + 1
            shown = f"{changed[name]} ({numbers[changed[name]]})"
        taken.add(shown)
        names[name] = shown
    return names


def escaped(part: str | int) -> str:
    """Return a part of a JSON Pointer, escaped."""
    return str(part).replace("~", "~0").replace("/", "~1")


def _by_name(name: str, item: Any, fields: dict[str, Any]) -> bool:
    if item is None or isinstance(item, bool):
        return False
    if is_secret(name, item):
        return True
    if name != "value":
        return False
    # A pair, such as an environment variable or a header: {"name": "TOKEN", "value": ...}.
    return any(isinstance(fields.get(label), str) and is_secret(fields[label], item) for label in ("name", "key"))


def _is_flag(word: str) -> bool:
    return "=" not in word and " " not in word and is_secret(word)


def _pointer(path: _Path | None) -> str:
    parts = []
    while path:
        path, part = path
        parts.append("/" + escaped(part))
    return "".join(reversed(parts))


def _texts(arguments: dict[str, Any]) -> list[str]:
    """Return every text in the arguments, including names of fields."""
    texts: list[str] = []
    todo: list[Any] = [arguments]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            texts += value
            value = value.values()
        for item in value:
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, _CONTAINERS):
                todo.append(item)
    return texts
