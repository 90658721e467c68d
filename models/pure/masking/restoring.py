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
    return _object(edited, original, shown, "")


def _object(edited: dict[str, Any], original: Any, shown: Any, path: str) -> dict[str, Any]:
    if not isinstance(original, dict) or not isinstance(shown, dict):
        original, shown = {}, {}
    original_names = {masked: name for name, masked in shown_names(original, Reader()).items()}
    result = {}
    for name, item in edited.items():
        here = f"{path}/{escaped(name)}"
        if MARKER in name and name not in shown:
            raise ValueError(f"{here}: there is a marker in a name where none was shown; {_ELSE}.")
        original_name = original_names.get(name, name)
        known = original_name in original and name in shown
        if known and name == "value" and _is_marked(item) and _labels(edited) != _labels(shown):
            raise ValueError(f"{here}: the name beside the marker is not the one that was shown; {_ELSE}.")
        known_value, known_face = (original[original_name], shown[name]) if known else (None, None)
        result[original_name] = _value(item, known_value, known_face, here)
    return result


def _array(edited: list[Any], original: Any, shown: Any, path: str) -> list[Any]:
    known = isinstance(original, list) and isinstance(shown, list) and len(edited) == len(shown) == len(original)
    faces = [_face(item) for item in shown] if known and any(map(_holds_marker, edited)) else []
    others, unchanged = set(faces), known and _face(edited) == _face(shown)
    result = []
    for index, item in enumerate(edited):
        here = f"{path}/{index}"
        if faces and _holds_marker(item) and (face := _face(item)) != faces[index] and face in others:
            raise ValueError(f"{here}: what stood elsewhere in the list holds a marker, and cannot be moved; {_ELSE}.")
        if known and _is_marked(item) and not unchanged:
            raise ValueError(f"{here}: what stands beside the marker in the list is not what was shown; {_ELSE}.")
        result.append(_value(item, original[index], shown[index], here) if known else _value(item, None, None, here))
    return result


def _value(edited: Any, original: Any, shown: Any, path: str) -> Any:
    if _is_marked(edited):
        if not _is_marked(shown):
            raise ValueError(f"{path}: there is a marker where none was shown; {_ELSE}.")
        if edited != shown:
            raise ValueError(f"{path}: the text around the marker is not the one that was shown; {_ELSE}.")
        return original
    if isinstance(edited, dict):
        return _object(edited, original, shown, path)
    if isinstance(edited, list):
        return _array(edited, original, shown, path)
    return edited


def _is_marked(item: Any) -> bool:
    return isinstance(item, str) and MARKER in item


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
