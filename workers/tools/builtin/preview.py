"""What a built-in tool would do to the session's files as they are now, for people who decide about the call. Changes nothing."""

import contextlib
import os
import re
from pathlib import Path
from typing import Any

from assent import ToolError
from models.pure.text.line_diff import hunks
from models.pure.text.words import SESSION_DIRECTORY
from workers.tools.builtin import edit, paths
from workers.tools.builtin.shell import shown_directory, starting_directory

_LONGEST_LINE = 200
"""Bytes of a branch's name that are read."""
_BRANCH = re.compile(r"ref: refs/heads/([\w-][\w.-]*(?:/[\w-][\w.-]*)*)", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def preview(tool: str, root: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what `models.session.approval.evidence` describes. `root` is the session's folder, `fields` the input of the call."""
    try:
        if tool == "bash":
            return _start(root, starting_directory(root, fields))
        with paths.located(root / "files", fields["file_path"]) as place:
            return _edit(place, fields) if tool == "edit" else _write(place, fields)
    except ToolError as error:
        return {"problem": str(error)}


def shell_start(root: Path) -> dict[str, Any] | None:
    """Return where the next shell command starts: `Session.shell_start`. None if that cannot be read."""
    try:
        return preview("bash", root, {})
    except (OSError, ValueError):
        return None


def _start(root: Path, start: Path) -> dict[str, Any]:
    """Return where the command starts, relative to the session's files, and its repository."""
    directory = shown_directory(root, start)
    return {"directory": SESSION_DIRECTORY if directory == "." else directory, **_repository(root, start)}


def _repository(root: Path, start: Path) -> dict[str, str]:
    """Return the `branch` of the repository around a directory, and its `commit` if a file has it; nothing outside of one.

    Reads two small files, and follows no links. Runs nothing.
    """
    files = root / "files"
    for folder in [start, *start.parents]:
        if not folder.is_relative_to(files):
            return {}
        if head := _line(files, folder / ".git" / "HEAD"):
            match = _BRANCH.fullmatch(head)
            commit = _line(files, folder / ".git" / "refs" / "heads" / match[1]) if match else head
            names = {"branch": match[1] if match else "", "commit": commit if _COMMIT.fullmatch(commit) else ""}
            return {name: text for name, text in names.items() if text}
    return {}


def _line(files: Path, path: Path) -> str:
    """Return the only line of a small file; empty if there is no such file."""
    with contextlib.suppress(ToolError), paths.located(files, str(path.relative_to(files))) as place:
        if place.file_mode() is None:
            return ""
        with os.fdopen(paths.open_file(place), "rb") as file:
            return _text(file.read(_LONGEST_LINE)).strip()
    return ""


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
