"""Rule texts that cover a call and calls like it: from narrow to wide."""

import itertools
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.pure.masking import MARKER
from models.pure.policy.commands import certain_beginning
from models.pure.policy.destroying import destroys
from models.pure.policy.likeness import program
from models.pure.policy.rules import FILE_PATHS
from models.pure.shell import Words, read

WORD = re.compile(r"[A-Za-z0-9][\w./-]{0,60}")
"""A word that a pattern can repeat as it stands: neither quotes nor signs of the shell."""
_MOST = 3
_MOST_COMMANDS = 6


def patterns(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return rule texts such as `bash(git push *)` and `edit(src/**)`. `arguments` have their secrets masked.

    Of a line of several commands: one for each command. A line runs without asking once all of its commands are covered.
    """
    if tool == "bash" and isinstance(arguments.get("command"), str):
        return _commands(arguments["command"], arguments.get("working_directory"))
    if tool in FILE_PATHS and isinstance(path := arguments.get(FILE_PATHS[tool].removeprefix("/")), str):
        return _folders(tool, path)
    return []


@dataclass(frozen=True)
class Part:
    """One simple command of a line, and the rule texts that cover it."""

    command: str
    """As a person would type it."""
    patterns: tuple[str, ...]
    """From narrow to wide; none if no pattern can repeat its words."""
    destroys: bool
    """True if it may take away what nobody brings back."""

    @property
    def suggestion(self) -> str:
        """The narrowest pattern that fits other calls as well."""
        return (self.patterns[1:] or self.patterns)[0]


def parts(tool: str, arguments: Mapping[str, Any]) -> list[Part]:
    """Return the different commands of a line of several, in order; none for other calls. `arguments` have their secrets masked."""
    command, directory = arguments.get("command"), arguments.get("working_directory")
    if tool != "bash" or not isinstance(command, str) or (line := read(command)).doubt or len(line.commands) < 2:
        return []
    is_named = directory is None or all(part == "." or WORD.fullmatch(part) for part in str(directory).split("/"))
    return [_part(words, directory, is_named=is_named) for words in dict.fromkeys(line.commands)]


def _part(words: Words, directory: str | None, *, is_named: bool) -> Part:
    typed = shlex.join(words)
    texts = [typed] if certain_beginning(words) is None and MARKER not in typed else []
    kind = program(words).split()
    wide = [text for text in _patterns(words) if text.split()[: len(kind)] == kind] or [f"{' '.join(kind)} *"]
    texts += [text for text in wide if all(map(WORD.fullmatch, text.removesuffix(" *").split()))]
    return Part(typed, tuple(_text(text, directory) for text in texts) if is_named else (), destroys(words))


def _text(pattern: str, directory: str | None) -> str:
    return f"bash({pattern})" if directory is None else f"bash:command={pattern}:working_directory={directory}"


def _commands(command: str, directory: str | None) -> list[str]:
    if directory is not None and not all(part == "." or WORD.fullmatch(part) for part in directory.split("/")):
        return []
    line = read(command)
    if line.doubt:
        return []
    if len(line.commands) == 1:
        texts = _patterns(line.commands[0])
    else:
        programs = dict.fromkeys(map(program, line.commands))
        texts = [f"{name} *" for name in programs if all(map(WORD.fullmatch, name.split()))][:_MOST_COMMANDS]
    return [_text(text, directory) for text in texts]


def _patterns(words: Words) -> list[str]:
    """Return the patterns that fit a command, from narrow to wide: `git push origin *`, `git push *`, `git *`."""
    plain = list(itertools.takewhile(WORD.fullmatch, words))
    lengths = range(min(len(plain), _MOST, max(len(words) - 1, 1)), 0, -1)
    return [f"{' '.join(plain[:length])} *" for length in lengths]


def _folders(tool: str, path: str) -> list[str]:
    folder, slash, _ = path.rpartition("/")
    if not slash or not folder or not all(WORD.fullmatch(part) for part in folder.split("/") if part):
        return []
    return [f"{tool}({folder}/**)"]
