"""The evidence on a card: a command, a change of a file, or the arguments as a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.desk.rendering import diff, highlight
from api.desk.rendering.gist import size_in_words
from api.desk.rendering.tree import Node, tree
from models.pure.text.line_diff import ChangeSize, hunks
from models.pure.text.visible import visible_lines

Arguments = Mapping[str, Any]
Look = Mapping[str, Any]
"""What a tools worker read from the session's files: see `models.session.approval.evidence`."""

_NO_LOOK = "No tools worker has looked at the session's files yet, so the change is shown without the file around it."
_NO_DIRECTORY = "In the session's directory; no tools worker has said yet which one"


@dataclass(frozen=True)
class EvidenceView:
    """The evidence of a call: `pieces` or `rows` with the other arguments as `rest`, or `rest` alone."""

    header: str = ""
    """Where the command runs, or which file changes."""
    size: str = ""
    """The size of a change of a file, as rows of lists say it."""
    pieces: highlight.Code | None = None
    """A command or a whole file in coloured pieces."""
    rows: Sequence[diff.DiffRow] = ()
    """A change of a file."""
    rest: Node | None = None
    """The arguments that are shown as a tree: all of them or, beside a command or a change, the others."""
    note: str = ""
    """A limit of this evidence, for people."""


def evidence(tool: str, arguments: Arguments, look: Look | None, schema: Any = None, *, ours: bool = True) -> EvidenceView:
    """Return the evidence of a call. `arguments` have their secrets masked. `schema`: the tool's JSON Schema.

    `ours`: True for a built-in tool on a workdir that our own workers have.
    """
    if tool == "bash" and isinstance(arguments.get("command"), str):
        return _command(arguments, look or {}, ours=ours)
    if tool == "edit" and all(isinstance(arguments.get(name), str) for name in ("file_path", "old_string", "new_string")):
        return _edit(arguments, look, ours=ours)
    if tool == "write" and all(isinstance(arguments.get(name), str) for name in ("file_path", "content")):
        return _write(arguments, look, ours=ours)
    return EvidenceView(rest=tree(dict(arguments), schema=schema))


def _command(arguments: Arguments, look: Look, *, ours: bool) -> EvidenceView:
    directory = arguments.get("working_directory")
    where = directory if isinstance(directory, str) else look.get("directory")
    branch = f", on the branch {visible_lines(str(look['branch']))}" if look.get("branch") else ""
    header = (
        f"In {visible_lines(where)}{branch}" if where else _NO_DIRECTORY if ours else "In the directory of the client's own worker"
    )
    note = visible_lines(str(look["problem"])) if look.get("problem") else ""
    pieces = highlight.command(arguments["command"])
    return EvidenceView(header, pieces=pieces, rest=_others(arguments, "command"), note=note)


def _edit(arguments: Arguments, look: Look | None, *, ours: bool) -> EvidenceView:
    rest = _others(arguments, "file_path", "old_string", "new_string")
    path = visible_lines(arguments["file_path"])
    size = size_in_words("edit", arguments, _size(look))
    if look and "hunks" in look:
        return EvidenceView(path, size, rows=list(diff.rows(look["hunks"])), rest=rest, note=_note(look))
    result, _ = hunks(arguments["old_string"], arguments["new_string"])
    note = visible_lines(str(look["problem"])) if look and look.get("problem") else _NO_LOOK if ours else ""
    return EvidenceView(path, size, rows=list(diff.rows(result, numbered=False)), rest=rest, note=note)


def _write(arguments: Arguments, look: Look | None, *, ours: bool) -> EvidenceView:
    rest = _others(arguments, "file_path", "content")
    path, size = visible_lines(arguments["file_path"]), size_in_words("write", arguments, _size(look))
    if look and "hunks" in look and not look.get("is_new"):
        return EvidenceView(path, size, rows=list(diff.rows(look["hunks"])), rest=rest, note=_note(look))
    problem = visible_lines(str(look["problem"])) if look and look.get("problem") else ""
    new = "This file does not exist yet." if look and look.get("is_new") else ""
    note = problem or new or (_NO_LOOK if ours else "")
    return EvidenceView(path, size, highlight.code(arguments["content"], arguments["file_path"]), rest=rest, note=note)


def _size(look: Look | None) -> ChangeSize | None:
    """Return the size of the change that a worker saw; None if no worker has looked, or if the call would fail."""
    if not look or "hunks" not in look:
        return None
    return ChangeSize.of(look["hunks"], look.get("left_out", 0), is_new=bool(look.get("is_new")))


def _note(look: Look) -> str:
    if look.get("left_out"):
        return f"{look['left_out']} more changed lines are not in this view; the whole input is below."
    return "" if look["hunks"] else "This changes nothing: the file has this text already."


def _others(arguments: Arguments, *shown: str) -> Node | None:
    others = {name: value for name, value in arguments.items() if name not in shown}
    return tree(others) if others else None
