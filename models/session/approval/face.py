"""The face of an approval: all that would run, as one short text, for places that show no card.

Nothing is allowed from where it is not wholly shown. So a row of a list and a message in a chat offer an allow only if the face is
whole, and the server refuses an allow from there otherwise. A face is whole if its text has every argument, uncut, in few enough
lines. A face with a masked value is not whole: only the card says which values are masked, and can show them. Nor is the face of a
call that may have run after a restored backup: only the card says so.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.errors import Conflict
from models.pure.shell import in_directory
from models.pure.text.visible import visible, visible_lines
from models.session.approval import sentences
from models.session.approval.row import Approval


@dataclass(frozen=True)
class Room:
    """The most that a place shows of a call."""

    place: str
    characters: int
    lines: int


ROW = Room("The row", sentences.MOST_SNIPPET, 8)
MESSAGE = Room("The message", 500, 20)
"""Slack takes 3,000 characters, and each of ours may become five when it is escaped."""
_JSON = 3
"""Characters of JSON for each character of a face: at most two, and the names of the arguments."""


@dataclass(frozen=True)
class Face:
    """A call in a place with little room."""

    title: str
    text: str
    """The whole call, or its beginning."""
    is_whole: bool
    """True if the title and the text show all that would run."""

    @classmethod
    def of(cls, approval: Approval, room: Room) -> "Face":
        """Return the face of an approval in a room."""
        title, snippet = sentences.title(approval)
        if approval.traits.takes_edits and not approval.traits.asks_to_run:  # its prompt says the whole input
            return cls(title, "", title == visible_lines(approval.prompt))
        # A longer input has no whole face, so it is not masked here: masking costs time.
        if not approval.traits.asks_to_run or len(approval.input) > _JSON * room.characters:
            return cls(title, snippet, is_whole=False)
        masked_input = approval.masked
        text = visible_lines(_text(approval, masked_input.arguments))
        fits = len(text) <= room.characters and text.count("\n") < room.lines
        has_more = bool(masked_input.paths or approval.leads_to or approval.decided_sha256 or approval.backup_at)
        return cls(title, sentences.shortened(text, room.characters), bool(text.strip()) and fits and not has_more)


def require_whole(approval: Approval, room: Room) -> None:
    """Raise Conflict if the approval waits and its face in this room is not whole."""
    if approval.status == "pending" and not Face.of(approval, room).is_whole:
        title = sentences.title(approval)[0]
        raise Conflict(f"{room.place} does not show all that would run: {title}. Open the call, read it, and allow it there.")


def _text(approval: Approval, arguments: Mapping[str, Any]) -> str:
    """Return all arguments as text. The tool is named unless the title names it."""
    if sentences.is_standard(approval):
        match approval.tool, arguments:
            case ("bash", {"command": str(text), **others}) if others.keys() <= {"working_directory"}:
                return in_directory(text, others.get("working_directory"))
            case ("read", {"file_path": str(text), **others}) if not others:
                return visible(text)
            case ("glob" | "grep", {"pattern": str(text), **others}) if not others:
                return visible(text)
            case ("write", {"file_path": str(path), "content": str(content), **others}) if not others:
                return "\n".join([visible(path), *_with_sign("+", content)])
            case ("edit", {"file_path": str(path), "old_string": str(old), "new_string": str(new), **others}) if not others:
                return "\n".join([visible(path), *_with_sign("-", old), *_with_sign("+", new)])
    text = json.dumps(arguments, ensure_ascii=False)
    return text if approval.prompt == f"Run {approval.tool}" else f"{approval.tool} {text}"


def _with_sign(sign: str, text: str) -> list[str]:
    return [sign + line for line in text.split("\n")]
