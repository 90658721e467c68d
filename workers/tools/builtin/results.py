"""`read_result`: a result that was too long for the model, in parts."""

import time
from collections.abc import Iterator
from typing import Any

from assent import ToolError
from models.errors import Refusal
from models.settings import settings
from workers.tools.builtin.patterns import compile_pattern
from workers.tools.clean import LINE_CHARACTERS, decode, escape_controls
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result

_RESERVE_BYTES = 500
"""Bytes of the model's part that are not the result's own text."""
_LINES_PER_LOOK = 1_000
"""Lines between two looks at the clock."""


def _read_result(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    call_id = fields["call_id"]
    try:
        data = context.stored_result(call_id)
    except Refusal as refusal:  # its part of the archive cannot be read
        raise ToolError(str(refusal)) from None
    if data is None:
        raise ToolError(
            f"{escape_controls(call_id[:200])}: has no stored result. Only results that were too long are stored: "
            "take call_id from the line that counts the bytes that were left out"
        )
    start = max(int(fields.get("start") or 1), 1)
    return text_result(_part(context, decode(data), start, fields.get("search")))


def _part(context: ToolContext, text: str, start: int, pattern: str | None) -> str:
    """Return as many lines from `start` on as may be shown; with a pattern only those that match, with their numbers."""
    matches = compile_pattern("search", pattern).search if pattern else None
    lines: list[str] = []
    room, end, total = settings().tool_output_bytes - _RESERVE_BYTES, 0, 0
    for total, line in _numbered(context, text):
        if end or total < start or (matches and not matches(line)):
            continue
        line_shown = f"{total}:{line}" if matches else line
        room -= len(line_shown.encode()) + 1
        if room >= 0 or not lines:
            lines.append(line_shown)
        elif matches:
            return "\n".join(lines) + f"\n[... more lines match; go on with start {total} ...]"
        else:
            end = total - 1
    if matches:
        return "\n".join(lines) or f"no line matches, of lines {start} to {total}"
    if start > total:
        raise ToolError(f"the result has only {total} lines")
    more = f"\n[... go on with start {end + 1} ...]" if end else ""
    return f"[lines {start} to {end or total} of {total}]\n" + "\n".join(lines) + more


def _numbered(context: ToolContext, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; a long line counts as several. Raises OutOfTime."""
    deadline = time.monotonic() + context.seconds
    number = 0
    for line in text.removesuffix("\n").split("\n"):
        for at in range(0, max(len(line), 1), LINE_CHARACTERS):
            if number % _LINES_PER_LOOK == 0:
                context.require_time(deadline)
            number += 1
            yield number, line[at : at + LINE_CHARACTERS]


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
