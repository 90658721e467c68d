"""`glob`: files by name."""

import contextlib
import fnmatch
import os
import re
import stat
import time
from typing import Any

from assent import ToolError
from models.policy.built_in_tools import DECLARATIONS
from workers.leash import quota
from workers.tools.builtin import paths
from workers.tools.builtin.write import TEMPORARY
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result

_ENTRIES = 50_000
_SHOWN = 200
_ALTERNATIVES = 64
_PATTERN_CHARACTERS = 1_000
_BRACES = re.compile(r"\{([^{}]*)\}")

Pattern = list[str]
States = frozenset[tuple[int, int]]
"""Pairs of a pattern's number and how many of its components have matched."""


def _glob(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    patterns = _patterns(fields["pattern"])
    with paths.located(context.workdir, fields.get("path") or ".", context.path_targets) as place:
        folder = paths.open_folder(place)
        try:
            matches, is_complete = _search(context, folder, patterns)
        finally:
            os.close(folder)
    # Newest first, then by name, so that the result is the same each time.
    matches.sort(key=lambda match: (-match[0], match[1]))
    above = "" if place.label == "." else place.label.rstrip("/") + "/"
    # A name may hold line ends, and must not pass for several names.
    lines = [above + name.replace("\n", "\\n") for _, name in matches[:_SHOWN]] or ["no matches"]
    if len(matches) > _SHOWN:
        lines.append(f"[... {len(matches) - _SHOWN} more matches; narrow the pattern ...]")
    if not is_complete:
        lines.append(f"[... only {_ENTRIES} files were looked at; give a path ...]")
    return text_result("\n".join(lines))


def _search(context: ToolContext, folder: int, patterns: list[Pattern]) -> tuple[list[tuple[float, str]], bool]:
    """Return the time of change and the name of each match below the folder, and whether the search saw every file.

    Links are listed, never followed.
    """
    matches: list[tuple[float, str]] = []
    deadline = time.monotonic() + context.seconds
    states_at: dict[str, States] = {".": _ahead(patterns, {(n, 0) for n in range(len(patterns))})}
    entries = 0
    for path, folders, files, fd in os.fwalk(".", dir_fd=folder):
        states = states_at.pop(path, frozenset())
        down: set[str] = set()
        for name in folders + files:
            context.require_time(deadline)
            entries += 1
            if entries > _ENTRIES:
                return matches, False
            after = _step(patterns, states, name)
            if not after or name.startswith(TEMPORARY):
                continue
            full = os.path.normpath(f"{path}/{name}")
            if any(components == len(patterns[n]) for n, components in after):
                with contextlib.suppress(OSError):  # the file is gone
                    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    matches.append((status.st_mtime, full + "/" * stat.S_ISDIR(status.st_mode)))
            if any(components < len(patterns[n]) for n, components in after):
                down.add(name)
                states_at[f"{path}/{name}"] = after
        folders[:] = [name for name in folders if name in down] if path.count("/") < quota.DEEP else []
    return matches, True


def _step(patterns: list[Pattern], states: States, name: str) -> States:
    """Return the states after an entry of this name, in a folder with `states`; empty if no pattern can match."""
    after = set()
    for n, components in states:
        if components == len(patterns[n]):
            continue
        component = patterns[n][components]
        if component == "**":
            # Only a pattern that names `.git` enters it.
            after |= set() if name == ".git" else {(n, components)}
        elif fnmatch.fnmatchcase(name, component) and (name != ".git" or ".git" in component):
            after.add((n, components + 1))
    return _ahead(patterns, after)


def _ahead(patterns: list[Pattern], states: set[tuple[int, int]]) -> States:
    """Return the states, with those that follow where `**` stands for no folder."""
    todo = list(states)
    while todo:
        n, components = todo.pop()
        if components < len(patterns[n]) and patterns[n][components] == "**" and (n, components + 1) not in states:
            states.add((n, components + 1))
            todo.append((n, components + 1))
    return frozenset(states)


def _patterns(text: str) -> list[Pattern]:
    """Return the pattern's alternatives, each as its components."""
    if len(text) > _PATTERN_CHARACTERS:
        raise ToolError(f"pattern: has more than {_PATTERN_CHARACTERS} characters")
    alternatives: list[Pattern] = []
    todo = [text]
    while todo:
        pattern = todo.pop()
        if braces := _BRACES.search(pattern):
            todo += [pattern[: braces.start()] + part + pattern[braces.end() :] for part in braces[1].split(",")]
            if len(todo) + len(alternatives) > _ALTERNATIVES:
                raise ToolError(f"pattern: has more than {_ALTERNATIVES} alternatives")
            continue
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        if pattern.startswith("/") or ".." in parts:
            raise ToolError("pattern: must be relative and without `..`; use path to search elsewhere")
        if not parts:
            raise ToolError("pattern: must not be empty")
        alternatives.append(parts)
    return alternatives


GLOB = Tool(
    **vars(DECLARATIONS["glob"]),
    idempotent=True,
    prompt="List files matching: {pattern}",
    run=_glob,
)
