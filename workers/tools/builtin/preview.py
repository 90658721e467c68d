"""What a built-in tool would do to the session's files as they are now, for people who decide about the call. Changes nothing."""

from pathlib import Path
from typing import Any

from assent import ToolError
from models.pure.text.line_diff import hunks
from workers.tools.builtin import edit, paths
from workers.tools.builtin.shell import shown_directory, starting_directory


def preview(tool: str, root: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what `models.session.approval.evidence` describes. `root` is the session's folder, `fields` the input of the call."""
    try:
        if tool == "bash":
            return {"directory": _directory(root, fields)}
        with paths.located(root / "files", fields["file_path"]) as place:
            return _edit(place, fields) if tool == "edit" else _write(place, fields)
    except ToolError as error:
        return {"problem": str(error)}


def _directory(root: Path, fields: dict[str, Any]) -> str:
    """Return where the command starts, relative to the session's files."""
    directory = shown_directory(root, starting_directory(root, fields))
    return "the session's directory" if directory == "." else directory


def _edit(place: paths.FilePlace, fields: dict[str, Any]) -> dict[str, Any]:
    change = edit.change(place, fields)
    return _difference(change.before, change.after)


def _write(place: paths.FilePlace, fields: dict[str, Any]) -> dict[str, Any]:
    after = fields["content"].encode("utf-8", "replace")
    if place.file_mode() is None:
        return {"hunks": [], "left_out": 0, "is_new": True}
    return _difference(edit.content(place)[0], after)


def _difference(before: bytes, after: bytes) -> dict[str, Any]:
    result, left_out = hunks(_text(before), _text(after))
    return {"hunks": result, "left_out": left_out}


def _text(data: bytes) -> str:
    # Postgres stores no NUL.
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")
