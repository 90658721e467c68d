"""`edit`: exact replacement of text in a file."""

import os
from dataclasses import dataclass
from typing import Any

from assent import ToolError
from models.policy.built_in_tools import DECLARATIONS
from workers.tools.builtin import paths
from workers.tools.builtin.write import FILE_BYTES, encode, only_writer, replace, require_room
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result


@dataclass(frozen=True)
class FileChange:
    """A file's content before and after an edit."""

    before: bytes
    after: bytes
    mode: int
    count: int
    """Replacements."""


def change(place: paths.FilePlace, fields: dict[str, Any]) -> FileChange:
    """Return the change that an edit would make to the file as it is now. Raises ToolError if the edit does not fit the file."""
    old, new = encode(fields["old_string"], "old_string"), encode(fields["new_string"], "new_string")
    if not old or old == new:
        raise ToolError("old_string must not be empty" if not old else "old_string and new_string are the same")
    data, mode = content(place)
    if _all_crlf(data):
        old, new = _to_crlf(old), _to_crlf(new)
    # Bytes, not text: other parts of the file need not be UTF-8.
    count = data.count(old)
    if count == 0:
        raise ToolError(f"{place.label}: old_string does not occur in the file; nothing was changed")
    if not fields.get("replace_all") and data.find(old, data.find(old) + 1) >= 0:
        times = f"{count} times" if count > 1 else "more than once, in places that overlap"
        raise ToolError(
            f"{place.label}: old_string occurs {times}; nothing was changed. Give more of the text around it, or set replace_all"
        )
    result = data.replace(old, new)
    if len(result) > FILE_BYTES:
        raise ToolError(f"{place.label}: would have {len(result)} bytes, more than the {FILE_BYTES} allowed")
    return FileChange(data, result, mode, count)


def _edit(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    with only_writer(context), paths.located(context.workdir, fields["file_path"], context.path_targets) as place:
        edit = change(place, fields)
        require_room(context, len(edit.after))
        replace(context, place, edit.after, edit.mode)
    return text_result(f"edited {place.label}: {edit.count} replacement{'s' if edit.count > 1 else ''}")


def content(place: paths.FilePlace) -> tuple[bytes, int]:
    """Return the content and mode of a file. Raises ToolError for a file of more than FILE_BYTES."""
    with os.fdopen(paths.open_file(place), "rb") as file:
        status = os.fstat(file.fileno())
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise ToolError(f"{place.label}: has {status.st_size} bytes, more than the {FILE_BYTES} allowed")
    return data, status.st_mode


def _all_crlf(data: bytes) -> bool:
    lines = data.count(b"\n")
    return lines > 0 and data.count(b"\r\n") == lines


def _to_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


EDIT = Tool(
    **vars(DECLARATIONS["edit"]),
    idempotent=False,
    prompt="Edit file: {file_path}",
    run=_edit,
)
