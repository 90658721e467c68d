"""The face of an approval: all that would run, as one short text, for places that show no card.

Nothing is allowed from where it is not wholly shown. So a row of a list and a message in a chat offer an allow only if the face is
whole, and the server refuses an allow from there otherwise. A face is whole if its text has every argument, uncut, in few enough
lines. A face with a masked value is not whole: only the card says which values are masked, and can show them. Nor is the face of a
call that may have run after a restored backup: only the card says so.

A table of several calls of one tool has a cell for each argument that differs, and shows equal arguments once. It decides a call
only if each of the call's values stands whole in it (`why_not_in_table`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from models.errors import Conflict
from models.pure.quorum import Quorum
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
CELL = Room("The table", 200, 6)
"""The room of one value."""
MOST_VALUES = 16
"""The most values of a call in a table."""
BETWEEN = " › "
"""Stands between the names on the path to a value: `customer › id`."""
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
        return cls(title, sentences.shortened(text, room.characters), bool(text.strip()) and fits and not _more(approval))


def require_whole(approval: Approval, room: Room) -> None:
    """Raise Conflict if the approval waits and its face in this room is not whole."""
    if approval.status == "pending" and not Face.of(approval, room).is_whole:
        title = sentences.title(approval)[0]
        raise Conflict(f"{room.place} does not show all that would run: {title}. Open the call, read it, and allow it there.")


def why_not_in_table(approval: Approval) -> str:
    """Return why a table does not decide the approval, as the end of a sentence that begins with the call; empty if it does."""
    quorum = Quorum.of(approval.quorum)
    if not approval.traits.asks_to_run:
        return "does not wait to run"
    if quorum.needs_sign_in:
        return "needs several people" if quorum.required_people > 1 else "needs four eyes"
    if not approval.offer.has("once"):
        return "may not be allowed once"
    return _more(approval) or ("" if _fits_cells(approval) else "is too long for a table")


def _fits_cells(approval: Approval) -> bool:
    """True if each argument stands whole in a cell, and no two have one name."""
    if len(approval.input) > MOST_VALUES * CELL.characters:
        return False
    values = list(leaves(approval.masked.arguments))
    texts = [text for name, value in values for text in (name, value_text(value))]
    fits = all(len(text) <= CELL.characters and text.count("\n") < CELL.lines for text in texts)
    return fits and len(values) == len(dict(values)) <= MOST_VALUES


def leaves(arguments: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of the arguments with its path: texts, numbers, truth values, null, lists and empty objects."""
    for name, value in arguments.items():
        place = path + visible(name).replace(BETWEEN.strip(), "<U+203A>")
        if isinstance(value, dict) and value:
            yield from leaves(value, place + BETWEEN)
        else:
            yield place, value


def value_text(value: Any) -> str:
    """Return a value as a cell shows it. A text that reads like another value, or like nothing, is quoted."""
    if not isinstance(value, str):
        return visible_lines(json.dumps(value, ensure_ascii=False))
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return visible_lines(value) if value.strip() else json.dumps(value)
    return json.dumps(visible_lines(value), ensure_ascii=False)


def _more(approval: Approval) -> str:
    """Return what the arguments do not say about what would run; empty if they say all."""
    if approval.masked.paths:
        return "has masked secrets"
    if approval.leads_to:
        return "follows links"
    if approval.decided_sha256:
        return "has been edited"
    return "may have run before a restore" if approval.backup_at else ""


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
