"""`read`: a text file, whole or by lines."""

import os
import time
from typing import Any, BinaryIO

from assent import ToolError
from models.policy.built_in_tools import DECLARATIONS
from models.settings import settings
from workers.tools.builtin import paths
from workers.tools.clean import decode
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result

_PIECE_BYTES = 65_536
_SNIFF_BYTES = 8_192


def _read(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    with (
        paths.located(context.workdir, fields["file_path"], context.path_targets) as place,
        os.fdopen(paths.open_file(place), "rb") as file,
    ):
        if b"\0" in file.read(_SNIFF_BYTES):
            raise ToolError(f"{place.label}: is a binary file ({_size(file)} bytes); only text can be read")
        file.seek(0)
        if fields.get("view_range"):
            data = _lines(context, file, *map(int, fields["view_range"]), label=place.label)
        elif _size(file) > (limit := settings().tool_output_bytes):
            raise ToolError(
                f"{place.label}: has {_size(file)} bytes, more than the {limit} that one call reads; "
                "give view_range, for example [1, 500]"
            )
        else:
            data = file.read(limit)
    notes = ["(the file's lines end in CRLF)"] if b"\r\n" in data else []
    return text_result(decode(data) or "(the file is empty)", *notes)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _lines(context: ToolContext, file: BinaryIO, start: int, end: int, *, label: str) -> bytes:
    """Return the lines `start` to `end`, both counted from 1 and included. An end below 1 means the end of the file.

    Raises OutOfTime: the file may have a billion lines before `start`.
    """
    deadline = time.monotonic() + context.seconds
    start = max(start, 1)
    if 1 <= end < start:
        raise ToolError(f"view_range [{start}, {end}]: the end is before the start")
    limit = settings().tool_output_bytes
    line, lines, at_start = 1, bytearray(), True
    while (end < 1 or line <= end) and (piece := file.readline(_PIECE_BYTES)):
        context.require_time(deadline)
        if line >= start:
            lines += piece
        if len(lines) > limit:
            raise ToolError(f"{label}: view_range [{start}, {end}] has more than {limit} bytes; ask for less")
        at_start = piece.endswith(b"\n")
        line += at_start
    last = line - 1 if at_start else line
    if last < start:
        raise ToolError(f"{label}: has only {last} lines")
    return bytes(lines)


READ = Tool(
    **vars(DECLARATIONS["read"]),
    idempotent=True,
    prompt="Read file: {file_path}",
    run=_read,
)
