"""`read_result`: what was too long for the model, in parts."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import re2

from models.settings import settings
from workers.tools.clean import LINE_CHARACTERS, decode, escape_controls, lines_in
from workers.tools.errors import ToolError
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result

_RESERVE_BYTES = 500
"""Of what the model sees, for what is not the result's own text."""
_PATTERN = 1_000
_CHUNK = 65_536


def _read_result(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    call_id = fields["call_id"]
    data = context.stored(call_id)
    if data is None:
        raise ToolError(
            f"{escape_controls(call_id[:200])}: has no result that was kept. Only one that was too long is: "
            "take call_id from the line that says how many bytes were left out"
        )
    start = max(int(fields.get("start") or 1), 1)
    if pattern := fields.get("search"):
        return text_result(_found(context, decode(data), start, pattern))
    return text_result(_part(context, decode(data), start))


def _part(context: ToolContext, text: str, start: int) -> str:
    """Lines from `start` on, as many as may be shown."""
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


def _found(context: ToolContext, text: str, start: int, pattern: str) -> str:
    """The lines from `start` on that match, with their numbers."""
    matches = _compiled(pattern)
    # To tell at once that no line of many matches. Where the ends of a line are not those of the text, this cannot tell.
    may = None if "\\" in pattern or "(?" in pattern else _compiled(f"(?m:{pattern})")
    shown: list[str] = []
    left, total = settings().tool_output_bytes - _RESERVE_BYTES, 0
    for before, chunk, count in _chunks(context, text):
        total = before + count
        if total < start or (may and count <= chunk.count("\n") + 1 and not may(chunk)):
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
    """The text in parts of whole lines: how many lines are before it, the part, how many it has."""
    deadline = time.monotonic() + context.seconds
    at, before, end = 0, 0, len(text.removesuffix("\n"))
    while at <= end:
        if context.cancelled.is_set() or time.monotonic() > deadline:
            raise ToolError("cancelled" if context.cancelled.is_set() else f"timed out after {context.seconds:g} s")
        stop = text.find("\n", min(at + _CHUNK, end), end)
        stop = end if stop < 0 else stop
        chunk = text[at:stop]
        count = lines_in(chunk)
        yield before, chunk, count
        at, before = stop + 1, before + count


def _numbered(chunk: str, before: int) -> Iterator[tuple[int, str]]:
    """Its lines, a long one as several."""
    number = itertools.count(before + 1)
    for line in chunk.split("\n"):
        for at in range(0, max(len(line), 1), LINE_CHARACTERS):
            yield next(number), line[at : at + LINE_CHARACTERS]


def _compiled(pattern: str) -> Callable[[str], object]:
    if len(pattern) > _PATTERN:
        raise ToolError(f"search: has more than {_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        said = error.args[0] if error.args else ""
        raise ToolError(f"search: {escape_controls(decode(said) if isinstance(said, bytes) else str(said))[:300]}") from None
    search: Callable[[str], object] = compiled.search
    return search


READ_RESULT = Tool(
    name="read_result",
    description=(
        "Read a tool result of which the middle was left out because it was too long. Returns its lines from `start` on, "
        "or with `search` only those that match, with their numbers. A line of more than "
        f"{LINE_CHARACTERS} characters counts as several."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "call_id": {"type": "string", "description": "As the line says that counts what was left out."},
            "start": {
                "type": ["integer", "null"],
                "description": "The first line to return, counted from 1.",
            },
            "search": {
                "type": ["string", "null"],
                "description": "A regular expression (RE2's syntax); lines that it matches somewhere are returned.",
            },
        },
        "required": ["call_id"],
        "additionalProperties": False,
    },
    effect="read",
    idempotent=True,
    seconds=None,
    prompt="Read the result of call: {call_id}",
    run=_read_result,
    policy={"type": "always_allow"},
    workdir=False,
)
