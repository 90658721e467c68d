"""One call's input as rules see it: each argument is looked up once, and each command line is read once."""

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.pure.json.canonical import digest
from models.pure.masking import MARKER
from models.pure.policy.commands import join_words
from models.pure.policy.conditions import DIRECTORY, MISSING, Argument, look_up, pointer
from models.pure.shell import CommandLine, Words, in_directory, read

_OPAQUE = "\udcff"
"""Stands for a secret in texts that patterns test. Only a `*` matches it: no pattern has this character, and RE2 cannot read it."""


class Input:
    """The input of one call of `tool`. `git_doubt` says why commands of git cannot be read with certainty in this session.

    The command of a call of `bash` that names its directory is read as a line that begins with `cd` to that directory. So no rule
    allows it that would not allow that line.
    """

    masked_input: "MaskedInput | None" = None
    """The same input with its secrets masked; None if nothing is masked."""

    def __init__(self, tool: str, fields: Mapping[str, Any], workdir: str | None, git_doubt: str | None = None) -> None:
        self._directory = fields.get(DIRECTORY.removeprefix("/")) if tool == "bash" else None
        self._fields = fields
        self._git_doubt = git_doubt
        self._workdir = workdir
        self._arguments: dict[str, Argument] = {}
        self._lines: dict[str, CommandLine | None] = {}
        self._commands: dict[str, list[str]] = {}
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
            argument = self._arguments[path] = Argument(self._tested(self._at(path)), self._workdir)
        return argument

    def _at(self, path: str) -> Any:
        return look_up(self._fields, pointer(path))

    def _tested(self, value: Any) -> Any:
        """Return a value as tests see it."""
        return value

    def names_directory(self, path: str) -> bool:
        """True if the line at a pointer begins with a `cd` to the directory that the input names."""
        return path == "/command" and self._directory is not None

    def line(self, path: str) -> CommandLine | None:
        """Return the command line at a pointer; None if there is none. A value that is not text cannot be read with certainty."""
        if path not in self._lines:
            value = self._at(path)
            self._lines[path] = None if value is MISSING or value is None or value == "" else self._read(path, value)
        return self._lines[path]

    def _read(self, path: str, value: Any) -> CommandLine:
        directory = self._directory if path == "/command" else None
        if not isinstance(value, str) or not isinstance(directory, str | None):
            return CommandLine((), "it is not text", ())
        line = read(in_directory(value, directory))
        return replace(line, doubt=self._git_doubt) if self._git_doubt and not line.doubt and line.runs("git") else line

    def commands(self, path: str) -> list[str]:
        """Return each command of the line at a pointer, as one text; an empty list if the line is not certain."""
        if path not in self._commands:
            line = self.line(path)
            self._commands[path] = [] if line is None or line.doubt else [join_words(words) for words in line.commands]
        return self._commands[path]

    def suspects(self, path: str) -> list[str]:
        """Return each command that the line at a pointer may run, as one text: once as it is named, and once without its folder."""
        if path not in self._suspects:
            line = self.line(path)
            suspects = line.suspects if line else ()
            self._suspects[path] = [join_words((name, *words[1:])) for words in suspects for name in programs(words)]
        return self._suspects[path]

    @property
    def doubt(self) -> str | None:
        """Why a command line cannot be read with certainty, of the lines that a rule looked at."""
        return next((line.doubt for _, line in sorted(self._lines.items()) if line and line.doubt), None)


class MaskedInput(Input):
    """An input with its secrets masked, as people see it. A test passes only if it passes whatever the secrets are."""

    def _tested(self, value: Any) -> Any:
        return value.replace(MARKER, _OPAQUE) if isinstance(value, str) else value

    def commands(self, path: str) -> list[str]:
        """Return each command of the line at a pointer, with an opaque character for each secret."""
        return [text.replace(MARKER, _OPAQUE) for text in super().commands(path)]


def programs(words: Words) -> set[str]:
    """Return the name of a command's program, and the name without its folder."""
    return {words[0], words[0].rpartition("/")[2]}
