"""Finds tool calls that may have written files from which git runs programs."""

from collections.abc import Mapping
from typing import Any

from models.pure.policy.rules import FILE_PATHS
from models.pure.shell import git_places, in_directory, read

DOUBT = "this session has, or may have written, files that can have git run other commands"


def guarded(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the path that a call of `write` or `edit` writes in a git directory, or with which it creates one; None otherwise."""
    path = arguments.get(FILE_PATHS[tool].removeprefix("/")) if tool in {"write", "edit"} else None
    return path if isinstance(path, str) and git_places.is_git_path(path) else None


def may_write_git(tool: str, arguments: Mapping[str, Any]) -> bool:
    """True if the call names a git directory where it writes or may write. A command that hides the name goes unnoticed."""
    if guarded(tool, arguments):
        return True
    command = arguments.get("command") if tool == "bash" else None
    if not isinstance(command, str):
        return False
    directory = arguments.get("working_directory")
    text = in_directory(command, None if directory is None else str(directory))
    line = read(text)
    if not line.doubt:
        return False
    return git_places.mentioned(text) or any(git_places.doubt(words) for words in line.suspects)
