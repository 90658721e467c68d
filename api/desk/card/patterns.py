"""Suggests patterns for a grant, from the call that waits: from narrow to wide."""

import itertools
import json
import re
from typing import Any

from models.pure.policy.likeness import program
from models.pure.policy.rules import FILE_PATHS
from models.pure.shell import Words, read
from models.session.approval.row import Approval

_WORD = re.compile(r"[A-Za-z0-9][\w./-]{0,60}")
"""A word that a pattern can repeat as it stands: neither quotes nor signs of the shell."""
_MOST = 3
_MOST_COMMANDS = 6


def suggested(approval: Approval) -> list[str]:
    """Return rule texts such as `bash(git push *)` and `edit(src/**)`. They come from the masked input and repeat no secret.

    Of a line of several commands: one for each command. A line runs without asking once all of its commands are covered.
    """
    arguments = _arguments(approval)
    if approval.tool == "bash" and isinstance(arguments.get("command"), str):
        return _commands(arguments["command"], arguments.get("working_directory"))
    if approval.tool in FILE_PATHS and isinstance(path := arguments.get(FILE_PATHS[approval.tool].removeprefix("/")), str):
        return _folders(approval.tool, path)
    return []


def why_none(approval: Approval) -> str:
    """Return why no pattern of commands can ever cover the call, in words; empty for a call that one can cover."""
    command = _arguments(approval).get("command")
    return read(command).doubt or "" if approval.tool == "bash" and isinstance(command, str) else ""


def commands_of(approval: Approval) -> int:
    """Return how many commands the call's line certainly runs; 0 if that is not certain, or for another tool."""
    command = _arguments(approval).get("command")
    if approval.tool != "bash" or not isinstance(command, str):
        return 0
    line = read(command)
    return 0 if line.doubt else len(line.commands)


def _arguments(approval: Approval) -> dict[str, Any]:
    masked_input = approval.masked
    arguments: dict[str, Any] = masked_input.arguments if masked_input.paths else json.loads(approval.input)
    return arguments


def _commands(command: str, directory: str | None) -> list[str]:
    if directory is not None and not all(part == "." or _WORD.fullmatch(part) for part in directory.split("/")):
        return []
    line = read(command)
    if line.doubt:
        return []
    if len(line.commands) == 1:
        texts = _patterns(line.commands[0])
    else:
        programs = dict.fromkeys(map(program, line.commands))
        texts = [f"{name} *" for name in programs if all(map(_WORD.fullmatch, name.split()))][:_MOST_COMMANDS]
    return [f"bash({text})" if directory is None else f"bash:command={text}:working_directory={directory}" for text in texts]


def _patterns(words: Words) -> list[str]:
    """Return the patterns that fit a command, from narrow to wide: `git push origin *`, `git push *`, `git *`."""
    plain = list(itertools.takewhile(_WORD.fullmatch, words))
    lengths = range(min(len(plain), _MOST, max(len(words) - 1, 1)), 0, -1)
    return [f"{' '.join(plain[:length])} *" for length in lengths]


def _folders(tool: str, path: str) -> list[str]:
    folder, slash, _ = path.rpartition("/")
    if not slash or not folder or not all(_WORD.fullmatch(part) for part in folder.split("/") if part):
        return []
    return [f"{tool}({folder}/**)"]
