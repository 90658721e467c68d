"""`read_result`: a result that was too long for the model, in parts."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

from models.settings import settings
from workers.tools.builtin.patterns import compiled
from workers.tools.clean import LINE_CHARACTERS, decode, escape_controls, lines_in
from workers.tools.errors import ToolError
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result

_RESERVE_BYTES = 500
"""Bytes of the model's part that are not the result's own text."""
_CHUNK = 65_536


def _read_result(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    call_id = fields["call_id"]
    data = context.stored(call_id)
    if data is None:
        raise ToolError(
            f"{escape_controls(call_id[:200])}: has no stored result. Only results that were too long are stored: "
            "take call_id from the line that counts the bytes that were left out"
        )
    start = max(int(fields.get("start") or 1), 1)
    if pattern := fields.get("search"):
        return text_result(_matching(context, decode(data), start, pattern))
    return text_result(_part(context, decode(data), start))


def _part(context: ToolContext, text: str, start: int) -> str:
    """As many lines from `start` on as may be shown."""
    shown: list[str] = []
    left, end, total = settings().tool_output_bytes - _RESERVE_BYTES, 0, 0
    for before, chunk, count in _chunks(context, text):
        total = before + count
        if total < start or end:
            continue
        for number, line in _numbered(chunk, before):
            if number < start:
                continue
            left -= len(line.encode()) + 1
            if left < 0 and shown:
                end = number - 1
                break
            shown.append(line)
    if start > total:
        raise ToolError(f"the result has only {total} lines")
    more = f"\n[... go on with start {end + 1} ...]" if end else ""
    return f"[lines {start} to {end or total} of {total}]\n" + "\n".join(shown) + more


def _matching(context: ToolContext, text: str, start: int, pattern: str) -> str:
    """The lines from `start` on that match, with their numbers."""
    matches = compiled("search", pattern).search
    # Skips chunks without a match. Only for expressions that mean the same in a line and in many lines.
    may_match = None if "\\" in pattern or "(?" in pattern else compiled("search", f"(?m:{pattern})").search
    shown: list[str] = []
    left, total = settings().tool_output_bytes - _RESERVE_BYTES, 0
    for before, chunk, count in _chunks(context, text):
        total = before + count
        if total < start or (may_match and count <= chunk.count("\n") + 1 and not may_match(chunk)):
            continue
        for number, line in _numbered(chunk, before):
            if number < start or not matches(line):
                continue
            left -= len(line.encode()) + len(str(number)) + 2
            if left < 0 and shown:
                return "\n".join(shown) + f"\n[... more lines match; go on with start {number} ...]"
            shown.append(f"{number}:{line}")
    return "\n".join(shown) or f"no line matches, of lines {start} to {total}"


def _chunks(context: ToolContext, text: str) -> Iterator[tuple[int, str, int]]:
    """The text in chunks of whole lines: the number of lines before, the chunk, and its number of lines."""
    deadline = time.monotonic() + context.seconds
    at, before, end = 0, 0, len(text.removesuffix("\n"))
    while at <= end:
        context.require_time(deadline)
        stop = text.find("\n", min(at + _CHUNK, end), end)
        stop = end if stop < 0 else stop
        chunk = text[at:stop]
        count = lines_in(chunk)
        yield before, chunk, count
        at, before = stop + 1, before + count


def _numbered(chunk: str, before: int) -> Iterator[tuple[int, str]]:
    """The lines of a chunk with their numbers; a long line counts as several."""
    number = itertools.count(before + 1)
    for line in chunk.split("\n"):
        for at in range(0, max(len(line), 1), LINE_CHARACTERS):
            yield next(number), line[at : at + LINE_CHARACTERS]


READ_RESULT = Tool(
    name="read_result",
    description=(
        "Read a tool result whose middle was left out because the result was too long. Returns its lines from `start` on, "
        "or with `search` only the lines that match, with their numbers. A line of more than "
        f"{LINE_CHARACTERS} characters counts as several."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "call_id": {"type": "string", "description": "The call_id in the line that counts the bytes that were left out."},
            "start": {
                "type": ["integer", "null"],
                "description": "The first line to return, counted from 1.",
            },
            "search": {
                "type": ["string", "null"],
                "description": "A regular expression (RE2's syntax). Lines with a match are returned.",
            },
        },
        "required": ["call_id"],
        "additionalProperties": False,
    },
    effect="read",
    idempotent=True,
    prompt="Read the result of call: {call_id}",
    run=_read_result,
    policy={"type": "always_allow"},
    workdir=False,
)
