"""Restores the secrets in arguments that a person saw masked and sends back edited.

What a tool does with a secret may depend on any other argument: a changed URL sends an unchanged password elsewhere. So if a person
may not see the secrets, markers stand for them only in an input that is wholly as it was shown. Whoever may see them may change the
rest; a marker then counts only in a text or list that is as it was shown, so that it is certain for which secret it stands.
"""

from typing import Any

from models.pure.json.canonical import canonical
from models.pure.masking.texts import MARKER, TextMasker
from models.pure.masking.values import escape_part, masked_names

_ELSE = "type the value that is meant, or ask somebody whose key has the scope `reveal`"


def restore(edited: dict[str, Any], original: dict[str, Any], masked_input: dict[str, Any], *, may_see: bool) -> dict[str, Any]:
    """Return `edited` with each marker replaced by its secret. `masked_input` is `mask(original, ...).arguments`, from
    which `edited` was made. `may_see`: the person may see the secrets.

    Raises ValueError for a marker that stands for nothing, and for a change beside a marker. The message names the JSON Pointer of
    the fault and holds no secret.
    """
    restored: dict[str, Any] = _value(edited, original, masked_input, "", free=may_see)
    return restored


def _value(edited: Any, original: Any, masked_value: Any, path: str, *, free: bool) -> Any:
    if not _holds_marker(edited):
        return edited
    if free and isinstance(edited, dict) and isinstance(original, dict) and isinstance(masked_value, dict):
        return _object(edited, original, masked_value, path)
    if difference := _difference(edited, masked_value, path):
        raise ValueError(f"{difference}: is not as it was shown, so no mask stands for its value here; {_ELSE}.")
    return original


def _object(edited: dict[str, Any], original: dict[str, Any], masked_fields: dict[str, Any], path: str) -> dict[str, Any]:
    names = {masked_name: name for name, masked_name in masked_names(original, TextMasker()).items()}
    result = {}
    for masked_name, item in edited.items():
        here = _in(path, masked_name)
        if MARKER in masked_name and masked_name not in masked_fields:
            raise ValueError(f"{here}: there is a mask in a name where none was shown; {_ELSE}.")
        name = names.get(masked_name, masked_name)
        result[name] = _value(item, original.get(name), masked_fields.get(masked_name), here, free=True)
    return result


def _difference(edited: Any, masked_value: Any, path: str) -> str | None:
    """Return the JSON Pointer of the first value that differs; None if both are equal JSON values."""
    if isinstance(edited, dict) and isinstance(masked_value, dict):
        if differing := [name for name in (*edited, *masked_value) if (name in edited) != (name in masked_value)]:
            return _in(path, differing[0])
        pairs = [(name, item, masked_value[name]) for name, item in edited.items()]
    elif isinstance(edited, list) and isinstance(masked_value, list) and len(edited) == len(masked_value):
        pairs = [(str(index), *pair) for index, pair in enumerate(zip(edited, masked_value, strict=True))]
    else:
        return None if canonical(edited) == canonical(masked_value) else path
    return next((place for name, ours, theirs in pairs if (place := _difference(ours, theirs, _in(path, name)))), None)


def _holds_marker(value: Any) -> bool:
    """True if a text or a name of the value holds a marker, at any depth."""
    if isinstance(value, dict):
        return any(MARKER in name or _holds_marker(item) for name, item in value.items())
    if isinstance(value, list):
        return any(map(_holds_marker, value))
    return isinstance(value, str) and MARKER in value


def _in(path: str, name: str) -> str:
    return f"{path}/{escape_part(name)}"
