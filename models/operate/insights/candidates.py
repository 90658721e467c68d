"""Rules that could answer a question instead of a person, from narrow to wide."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from models.operate.insights.harm import may_harm
from models.policy.effective_tool import EffectiveTool
from models.pure.policy import Match, match_of
from models.pure.policy.patterns import WORD, patterns
from models.pure.policy.rules import FILE_PATHS
from models.pure.shell import Words, read

_PLAIN = re.compile(r"[\w./@,+%=-]{1,100}")
_FOLDERS = 3
"""Folders of a path from which a pattern is made, each with all that is below."""
READERS = frozenset({"read", "glob", "grep"})
"""The built-in tools that only read."""


@dataclass(frozen=True)
class Candidate:
    """A rule text, and what tells quickly that it cannot concern a call."""

    text: str
    tool: str
    words: Words = ()
    """The words with which a command begins that it concerns; empty if it is not about commands."""
    is_open: bool = False
    """True if further words may follow."""

    def may_concern(self, commands: tuple[Words, ...]) -> bool:
        """True unless none of these commands begins with its words."""
        return not self.words or any(_by_program(words)[: len(self.words)] == self.words for words in commands)

    @property
    def width(self) -> tuple[int, int]:
        """A key that sorts candidates: the narrower ones come first."""
        return (0 if self.words and not self.is_open else 1, -len(self.words) or -self.text.count("/"))


def _by_program(words: Words) -> Words:
    return (words[0].rpartition("/")[2], *words[1:]) if words else ()


def candidates(tool: str, arguments: Mapping[str, Any]) -> list[Candidate]:
    """Return the rules that a call gives rise to, the narrowest first. `arguments` have their secrets masked."""
    if tool == "bash":
        texts = dict.fromkeys([*_exact_command(arguments), *patterns(tool, arguments)])
        return [Candidate(text, tool, *_words(match_of(text))) for text in texts]
    if tool in FILE_PATHS:
        return [Candidate(text, tool) for text in _folders(tool, arguments)]
    return [Candidate(tool, tool)]


def is_harmless(candidate: Candidate, tool: EffectiveTool) -> bool:
    """True if the calls that a candidate covers destroy nothing: by their commands or folder, or by the tool's own declaration."""
    if candidate.tool == "bash":
        return bool(candidate.words) and not may_harm(candidate.words, is_open=candidate.is_open)
    if tool.kind == "builtin":
        return candidate.tool in READERS or candidate.text != candidate.tool
    entry = tool.entry or {}
    hints = entry.get("annotations") or {}
    return tool.kind == "mcp" and entry.get("effect") == "read" and hints.get("destructiveHint") is not True


def _exact_command(arguments: Mapping[str, Any]) -> list[str]:
    """Return the text of exactly this command, if it is one command of plain words in the session's folder."""
    command = arguments.get("command")
    if not isinstance(command, str) or arguments.get("working_directory") is not None:
        return []
    line = read(command)
    if line.doubt or len(line.commands) != 1 or not all(map(_PLAIN.fullmatch, line.commands[0])):
        return []
    return [f"bash({' '.join(line.commands[0])})"]


def _words(match: Match) -> tuple[Words, bool]:
    """Return the fixed words of a pattern of commands, and whether further ones may follow."""
    pattern = next(str(condition.value) for condition in match.conditions if condition.operator == "command")
    return tuple(pattern.removesuffix(" *").split()), pattern.endswith(" *")


def _folders(tool: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield patterns of the folder of a file and of those above it, as far as they are plain and in the session's folder."""
    path = arguments.get(FILE_PATHS[tool].removeprefix("/"))
    names = [name for name in path.split("/") if name != "."] if isinstance(path, str) else []
    folders = names if tool in {"glob", "grep"} else names[:-1]
    if not folders or not all(map(WORD.fullmatch, folders)):
        return
    for length in range(len(folders), 0, -1)[:_FOLDERS]:
        yield f"{tool}({'/'.join(folders[:length])}/**)"
