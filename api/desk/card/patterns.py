"""Suggests patterns for a grant, from the call that waits: from narrow to wide."""

import json
import re

from models.pure.policy.rules import FILE_PATHS
from models.pure.shell import read
from models.session.approval.row import Approval

_WORD = re.compile(r"[A-Za-z0-9][\w./-]{0,60}")
"""A word that a pattern can repeat as it stands: neither quotes nor signs of the shell."""
_MOST = 3


def suggested(approval: Approval) -> list[str]:
    """Return rule texts such as `bash(git push *)` and `edit(src/**)`. They come from the masked input and repeat no secret."""
    masked_input = approval.masked
    arguments = masked_input.arguments if masked_input.paths else json.loads(approval.input)
    if approval.tool == "bash" and isinstance(arguments.get("command"), str):
        return _commands(arguments["command"], arguments.get("working_directory"))
    if approval.tool in FILE_PATHS and isinstance(path := arguments.get(FILE_PATHS[approval.tool].removeprefix("/")), str):
        return _folders(approval.tool, path)
    return []


def _commands(command: str, directory: str | None) -> list[str]:
    if directory is not None and not all(part == "." or _WORD.fullmatch(part) for part in directory.split("/")):
        return []
    line = read(command)
    if line.doubt or len(line.commands) != 1:
        return []
    [words] = line.commands
    plain = []
    for word in words:
        if not _WORD.fullmatch(word):
            break
        plain.append(word)
    lengths = range(min(len(plain), _MOST, max(len(words) - 1, 1)), 0, -1)
    commands = [f"{' '.join(plain[:length])} *" for length in lengths]
    return [f"bash({text})" if directory is None else f"bash:command={text}:working_directory={directory}" for text in commands]


def _folders(tool: str, path: str) -> list[str]:
    folder, slash, _ = path.rpartition("/")
    if not slash or not folder or not all(_WORD.fullmatch(part) for part in folder.split("/") if part):
        return []
    return [f"{tool}({folder}/**)"]
