"""One call's input, as rules look at it."""

import functools
from collections.abc import Mapping
from typing import Any

from models.pure.canonical import digest
from models.pure.policy.conditions import MISSING, Found, look_up, pointer
from models.pure.shell import Line, read


class Input:
    """One call's input; each argument is looked up once, and each command line is read once."""

    def __init__(self, said: Mapping[str, Any], workdir: str | None) -> None:
        self.said = said
        self._workdir = workdir
        self._found: dict[str, Found] = {}
        self._lines: dict[str, Line | None] = {}

    @functools.cached_property
    def sha256(self) -> str:
        """The hash of the whole input; of one that cannot be hashed, none that a rule could name."""
        try:
            return digest(self.said)
        except (ValueError, RecursionError):
            return ""

    def at(self, path: str) -> Found:
        """What is at a pointer."""
        found = self._found.get(path)
        if found is None:
            found = self._found[path] = Found(look_up(self.said, pointer(path)), self._workdir)
        return found

    def line(self, path: str) -> Line | None:
        """The command line at a pointer; None if there is none. What is no text cannot be read."""
        if path not in self._lines:
            value = self.at(path).value
            if value is MISSING or value is None or value == "":
                self._lines[path] = None
            else:
                self._lines[path] = read(value) if isinstance(value, str) else Line((), "it is no text", ())
        return self._lines[path]

    @property
    def doubt(self) -> str | None:
        """Why a command line that was looked at cannot be surely read."""
        return next((line.doubt for _, line in sorted(self._lines.items()) if line and line.doubt), None)
