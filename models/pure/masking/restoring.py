"""Arguments that a person was shown masked and sends back edited, with the secrets put back where they were."""

import json
from typing import Any

from models.pure.masking.texts import MARKER, Reader, put_back
from models.pure.masking.values import escaped, shown_names

_ELSE = "leave it where it was shown, or write the value that is meant"


def restore(edited: dict[str, Any], original: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """`edited`, with what each marker hides put back. `shown` is `mask(original, ...).shown`, and what was edited.

    A marker counts only at the JSON Pointer where it was shown; around it a text may be edited, as long as the number of its
    markers stays. A marker anywhere else (copied, moved, added) raises ValueError, which names the pointer and holds no secret.
    """
    return _Restore(edited, original, shown).done()


_NOTHING = object()
"""Stands where nothing was shown."""


class _Restore:
    """One value on its way back. Deep values are no problem: nothing recurses."""

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
            result[was] = self._place(item, original[was] if there else _NOTHING, shown[name] if there else _NOTHING, here)

    def _fill_array(self, edited: list[Any], original: Any, shown: Any, result: list[Any], path: str) -> None:
        known = isinstance(original, list) and isinstance(shown, list) and len(edited) == len(shown) == len(original)
        faces = [_face(item) for item in shown] if known and any(map(_holds_marker, edited)) else []
        others = set(faces)
        for index, item in enumerate(edited):
            here = f"{path}/{index}"
            if faces and _holds_marker(item) and (face := _face(item)) != faces[index] and face in others:
                raise ValueError(f"{here}: what stood elsewhere in the list holds a marker, and cannot be moved; {_ELSE}.")
            result.append(self._place(item, original[index] if known else _NOTHING, shown[index] if known else _NOTHING, here))

    def _place(self, edited: Any, original: Any, shown: Any, path: str) -> Any:
        if isinstance(edited, str):
            return _text(edited, original, shown, path) if MARKER in edited else edited
        if isinstance(edited, dict | list):
            copy: Any = {} if isinstance(edited, dict) else []
            self._todo.append((edited, original, shown, copy, path))
            return copy
        return edited


def _text(edited: str, original: Any, shown: Any, path: str) -> Any:
    if not isinstance(shown, str) or MARKER not in shown:
        raise ValueError(f"{path}: there is a marker where none was shown; {_ELSE}.")
    if edited == shown:
        return original
    if not isinstance(original, str):
        raise ValueError(f"{path}: what the marker hides here is no text, so nothing can stand beside it; {_ELSE}.")
    hidden = (original,) if shown == MARKER else Reader().read(original).hidden
    try:
        if shown != MARKER and put_back(shown, hidden) != original:
            raise ValueError
        return put_back(edited, hidden)
    except ValueError:
        raise ValueError(f"{path}: {edited.count(MARKER)} markers, but {len(hidden)} were shown here; {_ELSE}.") from None


def _marked(shown: dict[str, Any]) -> bool:
    return any(MARKER in name for name in shown)


def _holds_marker(item: Any) -> bool:
    """Whether an object or array holds a marker itself, not in something that it holds."""
    values = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return any(isinstance(value, str) and MARKER in value for value in values)


def _face(item: Any) -> str:
    """What an object or array holds itself, to know it by."""
    if isinstance(item, dict):
        return json.dumps({name: value for name, value in item.items() if not isinstance(value, (dict, list))}, sort_keys=True)
    if isinstance(item, list):
        return json.dumps([value for value in item if not isinstance(value, (dict, list))])
    return ""
