"""`grep`: lines that match a regular expression. RE2 takes linear time for every expression, so the search runs in the worker."""

import os
import stat
import time
from collections.abc import Iterator
from typing import Any

from assent import ToolError
from models.policy.built_in_tools import DECLARATIONS
from workers.leash import quota
from workers.tools.builtin import paths
from workers.tools.builtin.patterns import compile_pattern
from workers.tools.builtin.write import TEMPORARY
from workers.tools.clean import escape_controls
from workers.tools.kinds import OutOfTime, Tool, ToolContext, ToolResult, text_result

_FILES = 50_000
_MATCHES = 1_000
_LINE_BYTES = 2_000
_SNIFF_BYTES = 8_192
_SKIPPED = (".git", "node_modules")


def _grep(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    search = _Search(context, compile_pattern("pattern", fields["pattern"]))
    with paths.located(context.workdir, fields.get("path") or ".", context.path_targets) as place:
        is_folder = stat.S_ISDIR(place.kind() or 0)
        start = paths.open_folder(place) if is_folder else paths.open_file(place)
        try:
            notes = list(search.below(place.label, start) if is_folder else search.inside(place.label, os.dup(start)))
        except OutOfTime as error:
            return text_result(*context.output.whole().values(), f"{error}; narrow the pattern or the path", is_error=True)
        finally:
            os.close(start)
    if search.long_lines:
        notes.append(f"[... {search.long_lines} lines were searched only in their first {_LINE_BYTES} bytes ...]")
    matches = context.output.whole().get("stdout", "")
    return text_result((matches + "\n".join(notes)).rstrip("\n") or "no matches")


class _Search:
    """One search. Matches go to the call's output as they are found, so that a time limit loses none of them."""

    def __init__(self, context: ToolContext, pattern: Any) -> None:
        self._context = context
        self._pattern = pattern
        self._deadline = time.monotonic() + context.seconds
        self._matches = 0
        self.long_lines = 0

    def below(self, label: str, start: int) -> Iterator[str]:
        """Search the files below an open folder, through no link. Yields notes for the model. Raises OutOfTime."""
        files = 0
        for path, folders, names, folder in os.fwalk(".", dir_fd=start):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED) if path.count("/") < quota.DEEP else []
            for name in sorted(names):
                files += 1
                if files > _FILES:
                    yield f"[... only {_FILES} files were searched; give a path ...]"
                    return
                if (fd := _open(name, folder)) is None:
                    continue
                # A name may hold line ends, and must not pass for several names.
                for note in self.inside(os.path.normpath(f"{label}/{path}/{name}").replace("\n", "\\n"), fd):
                    yield note
                    return

    def inside(self, label: str, fd: int) -> Iterator[str]:
        """Search one open file and close it. Yields a note once there are too many matches. Raises OutOfTime."""
        with os.fdopen(fd, "rb") as file:
            for number, line in self._lines(file):
                if self._pattern.search(line) is None:
                    continue
                self._matches += 1
                if self._matches > _MATCHES:
                    yield f"[... more than {_MATCHES} matches; narrow the pattern or the path ...]"
                    return
                self._context.output.add("stdout", f"{escape_controls(label)}:{number}:".encode() + line + b"\n")

    def _lines(self, file: Any) -> Iterator[tuple[int, bytes]]:
        """Yield the number and beginning of each line of a text file; nothing of a binary file."""
        if b"\0" in file.peek(_SNIFF_BYTES)[:_SNIFF_BYTES]:
            return
        number, at_start = 0, True
        while piece := file.readline(_LINE_BYTES):
            self._context.require_time(self._deadline)
            is_whole = piece.endswith(b"\n")
            if at_start:
                number += 1
                self.long_lines += not is_whole and len(piece) == _LINE_BYTES
                yield number, piece.rstrip(b"\r\n")
            at_start = is_whole


def _open(name: str, folder: int) -> int | None:
    """Return a descriptor of a regular file; None for anything else, and for half-written files."""
    try:
        return None if name.startswith(TEMPORARY) else paths.open_file(paths.FilePlace(folder, name, name))
    except (OSError, ToolError):
        return None


GREP = Tool(
    **vars(DECLARATIONS["grep"]),
    idempotent=True,
    prompt="Search files for: {pattern}",
    run=_grep,
)
