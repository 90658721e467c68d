"""An approval in one line of a list: what is particular about it comes first, such as the command or the file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.briefing.tool_name import tool_in_words
from models.pure.shell import in_directory
from models.pure.text.line_diff import ChangeSize, hunks
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible
from models.session.approval import sentences
from models.session.approval.row import Approval

MOST = 200
"""Most characters of a line."""
_MOST_READ = 20_000
"""Characters of a longer input are not parsed for a line: its prompt says enough."""
TOOL_GLYPHS = {"bash": "shell", "edit": "diff", "write": "file", "read": "file", "glob": "search", "grep": "search"}
"""The names of the glyphs of the tools that every agent can have."""


@dataclass(frozen=True)
class Gist:
    """One line. Its texts show every character, and have their secrets masked."""

    glyph: str
    """The name of the glyph before the line: of the tool, or of the kind of approval."""
    text: str
    is_code: bool = False
    """True if `text` is a command, a path or a pattern."""
    more: str = ""
    """The size of a change, `+3 -2`, or the arguments of a call whose prompt does not name them."""


def gist(approval: Approval, size: ChangeSize | None = None) -> Gist:
    """Return the line of an approval. `size`: that of its change of a file, if a worker has looked at the file."""
    glyph = approval.traits.glyph or TOOL_GLYPHS.get(approval.tool, "plug" if approval.tool.startswith("mcp__") else "function")
    if approval.questions:
        messages = (str(question["message"]) for question in (approval.shown("questions") or {}).values())
        return Gist(glyph, one_line(" ".join(messages)))
    if approval.tool_call_id is None or len(approval.input) > _MOST_READ:
        return Gist(glyph, one_line(sentences.title(approval)[1] or sentences.title(approval)[0]))
    arguments = approval.decided_shown or approval.masked.arguments
    code, more = of_call(approval.tool, arguments, None if approval.decided_shown else size)
    if code:
        return Gist(glyph, one_line(code), is_code=True, more=more)
    if approval.traits.asks_to_run and approval.prompt != f"Run {approval.tool}":
        return Gist(glyph, one_line(approval.prompt))
    return Gist(glyph, tool_in_words(approval.tool), more=one_line(in_words(arguments)))


def of_call(tool: str, arguments: Mapping[str, Any], size: ChangeSize | None = None) -> tuple[str, str]:
    """Return the code that is particular to a call of a built-in tool, and the size of its change; empty for other calls.

    `size`: as for `gist`.
    """
    place = arguments.get("path")
    match tool, arguments:
        case "bash", {"command": str(text)}:
            return in_directory(text, arguments.get("working_directory")), ""
        case (("edit" | "write"), {"file_path": str(path)}):
            return path, size_in_words(tool, arguments, size)
        case "read", {"file_path": str(text)}:
            return text, ""
        case (("glob" | "grep"), {"pattern": str(text)}):
            return text, f"in {visible(place)}" if isinstance(place, str) else ""
    return "", ""


def size_in_words(tool: str, arguments: Mapping[str, Any], size: ChangeSize | None) -> str:
    """Return the size of a call's change of a file: `+3 -2`, `new, 12 lines`; empty for other calls. `size`: as for `gist`."""
    match tool, arguments:
        case "edit", {"old_string": str(old), "new_string": str(new)}:
            everywhere = ", each place" if arguments.get("replace_all") and size is None else ""
            return (size or ChangeSize.of(*hunks(old, new))).words + everywhere
        case "write", {"content": str(content)}:
            lines = number_with_noun(content.count("\n") + (not content.endswith("\n")), "line")
            return lines if size is None else f"new, {lines}" if size.is_new else size.words
    return ""


def in_words(arguments: Mapping[str, Any]) -> str:
    """Return arguments in a line: `order 17, reason "late"`."""
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())


def one_line(text: str) -> str:
    """Return a text in one line, cut at `MOST` characters. The ends of its lines show."""
    line = visible(" ⏎ ".join(part for part in text.splitlines() if part.strip()))
    return line if len(line) <= MOST else f"{line[: MOST - 1]}…"
