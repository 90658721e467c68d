"""Restores the secrets in arguments that a person saw masked and sends back edited.

What a tool does with a secret may depend on any other argument: a changed URL sends an unchanged password elsewhere. So if a person
may not see the secrets, markers stand for them only in an input that is wholly as it was shown. Whoever may see them may change the
rest; a marker then counts only in a text or list that is as it was shown, so that it is certain for which secret it stands.
"""

from typing import Any

from models.pure.json.canonical import canonical
from models.pure.masking.texts import MARKER, Reader
from models.pure.masking.values import escaped, shown_names

_ELSE = "type the value that is meant, or ask somebody whose key has the scope `reveal`"


def restore(edited: dict[str, Any], original: dict[str, Any], shown: dict[str, Any], *, may_see: bool) -> dict[str, Any]:
    """Return `edited` with each marker replaced by its secret. `shown` is `mask(original, ...).shown`, from which `edited` was
    made. `may_see`: the person may see the secrets.

    Raises ValueError for a marker that stands for nothing, and for a change beside a marker. The message names the JSON Pointer of
    the fault and holds no secret.
    """
    restored: dict[str, Any] = _value(edited, original, shown, "", free=may_see)
    return restored


def _value(edited: Any, original: Any, shown: Any, path: str, *, free: bool) -> Any:
    if not _holds_marker(edited):
        return edited
    if free and isinstance(edited, dict) and isinstance(original, dict) and isinstance(shown, dict):
        return _object(edited, original, shown, path)
    if difference := _difference(edited, shown, path):
        raise ValueError(f"{difference}: is not as it was shown, so no mask stands for its value here; {_ELSE}.")
    return original


def _object(edited: dict[str, Any], original: dict[str, Any], shown: dict[str, Any], path: str) -> dict[str, Any]:
    names = {masked: name for name, masked in shown_names(original, Reader()).items()}
    result = {}
    for masked, item in edited.items():
        here = _in(path, masked)
        if MARKER in masked and masked not in shown:
            raise ValueError(f"{here}: there is a mask in a name where none was shown; {_ELSE}.")
        name = names.get(masked, masked)
        result[name] = _value(item, original.get(name), shown.get(masked), here, free=True)
    return result


def _difference(edited: Any, shown: Any, path: str) -> str | None:
    """Return the JSON Pointer of the first value that differs; None if both are equal JSON values."""
    if isinstance(edited, dict) and isinstance(shown, dict):
        if differing := [name for name in (*edited, *shown) if (name in edited) != (name in shown)]:
            return _in(path, differing[0])
        pairs = [(name, item, shown[name]) for name, item in edited.items()]
    elif isinstance(edited, list) and isinstance(shown, list) and len(edited) == len(shown):
        pairs = [(str(index), *pair) for index, pair in enumerate(zip(edited, shown, strict=True))]
    else:
        return None if canonical(edited) == canonical(shown) else path
    return next((place for name, ours, theirs in pairs if (place := _difference(ours, theirs, _in(path, name)))), None)


def _holds_marker(value: Any) -> bool:
    """True if a text or a name of the value holds a marker, at any depth."""
    if isinstance(value, dict):
        return any(MARKER in name or _holds_marker(item) for name, item in value.items())
    if isinstance(value, list):
        return any(map(_holds_marker, value))
    return isinstance(value, str) and MARKER in value


def _in(path: str, name: str) -> str:
    return f"{path}/{escaped(name)}"
