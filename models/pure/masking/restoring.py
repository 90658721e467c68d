"""Restores the secrets in arguments that a person saw masked and sends back edited.

A marker stands for its secret only at the place where it was shown. The text around it decides how the tool uses the secret, so
that text must be unchanged: otherwise a person who may not see a secret could have it printed.
"""

import json
from typing import Any

from models.pure.masking.texts import MARKER, Reader
from models.pure.masking.values import escaped, shown_names

_ELSE = "type the value that is meant, or ask somebody whose key has the scope `reveal`"


def restore(edited: dict[str, Any], original: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """Return `edited` with each marker replaced by its secret. `shown` is `mask(original, ...).shown`, from which `edited` was
    made.

    A marker counts only at the JSON Pointer where it was shown, and only in unchanged surroundings: the rest of its text; in an
    array, the other texts and numbers, and the number of items; beside a `value`, its `name` and `key`. Raises ValueError for any
    other marker (copied, moved, added). The message names the pointer and holds no secret.
    """
    return _Restore(edited, original, shown).done()


_NOTHING = object()
"""The original of a value that was not shown."""


class _Restore:
    """Restores one value, without recursion, so that its depth does not matter."""

    def __init__(self, edited: dict[str, Any], original: dict[str, Any], shown: dict[str, Any]) -> None:
        self._result: dict[str, Any] = {}
        self._todo: list[tuple[Any, Any, Any, Any, str]] = [(edited, original, shown, self._result, "")]

    def done(self) -> dict[str, Any]:
        while self._todo:
            edited, original, shown, result, path = self._todo.pop()
            if isinstance(edited, dict):
                self._fill_object(edited, original, shown, result, path)
            else:
                self._fill_array(edited, original, shown, result, path)
        return self._result

    def _fill_object(self, edited: dict[str, Any], original: Any, shown: Any, result: dict[str, Any], path: str) -> None:
        known = isinstance(original, dict) and isinstance(shown, dict)
        names = {now: was for was, now in shown_names(original, Reader()).items()} if known and _marked(shown) else {}
        for name, item in edited.items():
            here = f"{path}/{escaped(name)}"
            if MARKER in name and not (known and name in shown):
                raise ValueError(f"{here}: there is a marker in a name where none was shown; {_ELSE}.")
            was = names.get(name, name)
            there = known and was in original and name in shown
            if there and name == "value" and _is_marked(item) and _labels(edited) != _labels(shown):
                raise ValueError(f"{here}: the name beside the marker is not the one that was shown; {_ELSE}.")
            result[was] = self._place(item, original[was] if there else _NOTHING, shown[name] if there else _NOTHING, here)

    def _fill_array(self, edited: list[Any], original: Any, shown: Any, result: list[Any], path: str) -> None:
        known = isinstance(original, list) and isinstance(shown, list) and len(edited) == len(shown) == len(original)
        faces = [_face(item) for item in shown] if known and any(map(_holds_marker, edited)) else []
        others, unchanged = set(faces), known and _face(edited) == _face(shown)
        for index, item in enumerate(edited):
            here = f"{path}/{index}"
            if faces and _holds_marker(item) and (face := _face(item)) != faces[index] and face in others:
                raise ValueError(f"{here}: what stood elsewhere in the list holds a marker, and cannot be moved; {_ELSE}.")
            if known and _is_marked(item) and not unchanged:
                raise ValueError(f"{here}: what stands beside the marker in the list is not what was shown; {_ELSE}.")
            result.append(self._place(item, original[index] if known else _NOTHING, shown[index] if known else _NOTHING, here))

    def _place(self, edited: Any, original: Any, shown: Any, path: str) -> Any:
        if _is_marked(edited):
            if not _is_marked(shown):
                raise ValueError(f"{path}: there is a marker where none was shown; {_ELSE}.")
            if edited != shown:
                raise ValueError(f"{path}: the text around the marker is not the one that was shown; {_ELSE}.")
            return original
        if isinstance(edited, dict | list):
            copy: Any = {} if isinstance(edited, dict) else []
            self._todo.append((edited, original, shown, copy, path))
            return copy
        return edited


def _is_marked(item: Any) -> bool:
    return isinstance(item, str) and MARKER in item


def _marked(shown: dict[str, Any]) -> bool:
    return any(MARKER in name for name in shown)


def _labels(pair: dict[str, Any]) -> list[Any]:
    return [pair.get(label) for label in ("name", "key")]


def _holds_marker(item: Any) -> bool:
    """True if an object or array holds a marker directly, not in a nested value."""
    values = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return any(map(_is_marked, values))


def _face(item: Any) -> str:
    """Return the direct members of an object or array, as a text to compare."""
    if isinstance(item, dict):
        return json.dumps({name: value for name, value in item.items() if not isinstance(value, (dict, list))}, sort_keys=True)
    if isinstance(item, list):
        return json.dumps([value for value in item if not isinstance(value, (dict, list))])
    return ""
