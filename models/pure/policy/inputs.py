"""One call's input as rules see it: each argument is looked up once, and each command line is read once."""

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.pure.canonical import digest
from models.pure.policy.commands import joined
from models.pure.policy.conditions import MISSING, Argument, look_up, pointer
from models.pure.shell import Line, Words, read


class Input:
    """The input of one call. `git_doubt` says why commands of git cannot be read with certainty in this session."""

    def __init__(self, fields: Mapping[str, Any], workdir: str | None, git_doubt: str | None = None) -> None:
        self._fields = fields
        self._git_doubt = git_doubt
        self._workdir = workdir
        self._arguments: dict[str, Argument] = {}
        self._lines: dict[str, Line | None] = {}
        self._suspects: dict[str, list[str]] = {}

    @functools.cached_property
    def sha256(self) -> str:
        """The hash of the whole input. Empty, which no rule names, if the input has no canonical form."""
        try:
            return digest(self._fields)
        except (ValueError, RecursionError):
            return ""

    def at(self, path: str) -> Argument:
        """Return the argument at a pointer."""
        argument = self._arguments.get(path)
        if argument is None:
            argument = self._arguments[path] = Argument(look_up(self._fields, pointer(path)), self._workdir)
        return argument

    def line(self, path: str) -> Line | None:
        """Return the command line at a pointer; None if there is none. A value that is no text cannot be read with certainty."""
        if path not in self._lines:
            value = self.at(path).value
            self._lines[path] = None if value is MISSING or value is None or value == "" else self._read(value)
        return self._lines[path]

    def _read(self, value: Any) -> Line:
        if not isinstance(value, str):
            return Line((), "it is no text", ())
        line = read(value)
        return replace(line, doubt=self._git_doubt) if self._git_doubt and not line.doubt and line.runs("git") else line

    def suspects(self, path: str) -> list[str]:
        """Return each command that the line at a pointer may run, as one text: once as it is named, and once without its folder."""
        if path not in self._suspects:
            line = self.line(path)
            suspects = line.suspects if line else ()
            self._suspects[path] = [joined((name, *words[1:])) for words in suspects for name in programs(words)]
        return self._suspects[path]

    @property
    def doubt(self) -> str | None:
        """Why a command line cannot be read with certainty, of the lines that a rule looked at."""
        return next((line.doubt for _, line in sorted(self._lines.items()) if line and line.doubt), None)


def programs(words: Words) -> set[str]:
    """Return the name of a command's program, and the name without its folder."""
    return {words[0], words[0].rpartition("/")[2]}
