"""Which calls are alike, so that people see what was decided about such calls before.

A likeness is a text: the tool, and what kind of call it is. A command counts by its programs and their subcommands, an edit by its
folder, and any other call by its tool alone. It repeats no other argument.

    bash: git push, gh release        a command line that is certain
    bash #3f9a0c1b2d4e                a command line that is not: alike is only the same input
    edit: src/billing
    mcp__shop__refund
"""

import re
from collections.abc import Mapping
from typing import Any

from models.pure.policy.rules import FILE_PATHS
from models.pure.shell import Words, read

_SUBCOMMANDS = frozenset(
    name
    for names in (
        "apt apt-get aws az brew bundle cargo composer conda docker dotnet flyctl gcloud gem gh git glab go gradle helm heroku",
        "kubectl make mvn nix npm npx pip pip3 pnpm podman poetry pulumi rails ruff rustup service snap supabase svn systemctl",
        "terraform tofu uv vercel wrangler yarn",
    )
    for name in names.split()
)
"""Programs of which the first word says what they do."""
_WORD = re.compile(r"[a-z][a-z0-9:_-]{0,30}")
_PROGRAM = re.compile(r"[\w.+/-]{1,60}")
_SYSTEM = re.compile(r"^(/usr)?(/local)?/s?bin/(?=[^/]+$)")
"""The folders of a system's programs. A program of another folder has only its name in common with these."""
_OWN_FOLDER = "the session's folder"
_PLAIN_FOLDER = re.compile(r"/?[\w./ -]+")
_FOLDERS = 2
"""Folders of a path that count."""
_MOST = 120
"""Most characters behind the tool's name."""


def likeness(tool: str, arguments: Mapping[str, Any], sha256: str) -> str:
    """Return the likeness of a call. `arguments` have their secrets masked; `sha256` is the hash of the real input."""
    if tool == "bash":
        kind = _kind_of_command(arguments.get("command"))
        return f"{tool}: {kind}" if kind else f"{tool} #{sha256[:12]}"
    path = arguments.get(FILE_PATHS[tool].removeprefix("/")) if tool in FILE_PATHS else None
    return f"{tool}: {_folder(path)}" if isinstance(path, str) else tool


def in_words(text: str, tool: str) -> str:
    """Return what such calls have in common, for people: `git push, gh release`, `files in src`, or the tool."""
    rest = text.removeprefix(tool)
    if rest.startswith(" #"):
        return "exactly this command"
    kind = rest.removeprefix(": ")
    if not kind:
        return tool
    return kind if tool == "bash" else f"{tool} in {kind}"


def pattern(text: str, tool: str) -> str:
    """Return the text of a rule about such calls: `bash(git push *)`; empty if no single one covers them and no others.

    It covers a program by its name alone, not by the path of a system's folder.
    """
    kind = text.removeprefix(tool).removeprefix(": ")
    if kind.startswith(" #") or kind == _OWN_FOLDER or "," in kind:
        return ""
    if not kind:
        return tool
    if tool == "bash":
        return "" if kind in _SUBCOMMANDS else f"bash({kind} *)"
    if not _PLAIN_FOLDER.fullmatch(kind) or len(kind) == _MOST:
        return ""
    names = [name for name in kind.split("/") if name]
    # Calls of a folder's folders are alike too, but only at the depth at which a likeness ends.
    return f"{tool}({kind.rstrip('/')}/{'**' if len(names) == _FOLDERS else '*'})"


def _kind_of_command(command: Any) -> str:
    """Return the programs of a command line, each with its subcommand; empty if they are not certain, or too many."""
    if not isinstance(command, str):
        return ""
    line = read(command)
    if line.doubt or not all(_PROGRAM.fullmatch(words[0]) for words in line.commands):
        return ""
    kind = ", ".join(dict.fromkeys(map(program, line.commands)))
    return kind if len(kind) <= _MOST else ""


def program(words: Words) -> str:
    """Return a command's program, with the subcommand of a program that has some: `git push`, `ls`."""
    name = _SYSTEM.sub("", words[0])
    subcommand = words[1] if len(words) > 1 and name in _SUBCOMMANDS and _WORD.fullmatch(words[1]) else ""
    return f"{name} {subcommand}" if subcommand else name


def _folder(path: str) -> str:
    folders = [name for name in path.split("/")[:-1] if name not in {"", "."}][:_FOLDERS]
    folder = "/" * path.startswith("/") + "/".join(folders)
    return folder[:_MOST] or _OWN_FOLDER
