"""Parses a command line for policies."""

import re
import shlex
from dataclasses import dataclass

from models.pure.shell import git_commands, git_places, grammar, wrappers
from models.pure.shell.words import Doubt, Torn, guess
from models.pure.text.visible import is_plain

Words = tuple[str, ...]

LENGTH = 4_000
"""Characters of the longest line without doubt."""
_DEPTH = 3
"""How deep a text within a line (`bash -c "..."`) is parsed as a line itself."""
_SUSPECTS = 2_000
_TAILS = 40
_SPLIT = re.compile(r"[\x00;&|()`\n\r{}$<>!=,\[\]]+")
_SPLIT_QUOTED = re.compile(r"[\x00;&|()`\n\r'\"{}$<>!=,\\\[\]]+")


@dataclass(frozen=True)
class CommandLine:
    """Every simple command of a command line."""

    commands: tuple[Words, ...]
    """Without doubt, exactly the commands that run; else the probable ones. Git's options without effect are left out."""
    doubt: str | None
    """Why it is uncertain which commands run, in words for people that continue "not sure: "; None if it is certain."""
    suspects: tuple[Words, ...]
    """The commands for rules that deny or ask: all commands, as written and without git's options before the subcommand, and those
    that they may run in turn."""

    def runs(self, name: str) -> bool:
        """True if one of the commands has this name, in any folder."""
        return any(wrappers.plain_name(words[0]) == name for words in self.commands)


def in_directory(command: str, directory: str | None) -> str:
    """Return the line that has the effect of a command in a directory, for rules and for people. None: no directory is named."""
    return command if directory is None else f"cd -- {shlex.quote(directory)}\n{command}"


def read(text: str) -> CommandLine:
    """Parse a command line. Bounded in time and depth for any text. Never raises."""
    return _read(text, 0)


def _read(text: str, depth: int) -> CommandLine:
    text_doubt = _text_doubt(text)
    source = text[:LENGTH].encode("utf-8", "replace")
    root = grammar.tree_of(source)
    probable, fed = grammar.probable(root, source)
    simple_commands: list[Words] = probable
    doubt = text_doubt
    torn = text_doubt is not None
    if not text_doubt:
        try:
            simple_commands = grammar.sure(root, source)
            doubt = next(
                (why for words in _plain(simple_commands) if (why := wrappers.doubt(words) or git_places.doubt(words))), None
            )
            doubt = doubt or git_places.unseen(simple_commands, in_order=grammar.runs_in_order(root))
        except Doubt as error:
            doubt = str(error)
            torn = isinstance(error, Torn)
    commands = _plain(simple_commands)
    suspects = dict.fromkeys([*commands, *simple_commands, *probable])
    if doubt:
        _add_handed_on(suspects, fed, depth)
    else:
        _add_tails(suspects, [words for words in commands if wrappers.hands_on(words)])
    if torn:
        suspects |= dict.fromkeys(_rough(text))
    suspects |= dict.fromkeys(map(git_commands.without_options, tuple(suspects)))
    return CommandLine(commands, doubt, tuple(suspects)[:_SUSPECTS])


def _plain(commands: list[Words]) -> tuple[Words, ...]:
    return tuple(map(git_commands.plain, commands))


def _text_doubt(text: str) -> str | None:
    if len(text) > LENGTH:
        return "it is too long to be sure of"
    if not text.strip(" \t\n"):
        return "it is empty"
    for sign in set(text):
        if sign not in "\t\n" and not is_plain(sign):
            return f"it holds the invisible character U+{ord(sign):04X}"
    return None


def _add_handed_on(suspects: dict[Words, None], fed: list[str], depth: int) -> None:
    """Add the commands that other commands may run: the ends of their words, and texts in the line that look like a command."""
    runners = [words for words in suspects if wrappers.hands_on(words)]
    if not runners:
        return
    texts = [word for words in suspects for word in words if re.search(r"[\s;&|()`$'\"]", word)] + fed
    _add_tails(suspects, runners)
    for text in texts[:_TAILS]:
        if depth < _DEPTH:
            suspects |= dict.fromkeys(_read(text, depth + 1).suspects)
        suspects |= dict.fromkeys(_rough(text))


def _add_tails(suspects: dict[Words, None], runners: list[Words]) -> None:
    for words in runners[:_TAILS]:
        suspects |= dict.fromkeys(words[start:] for start in range(1, min(len(words), _TAILS)))


def _rough(text: str) -> list[Words]:
    """Return the pieces of a text between signs of the shell, with and without its quotes."""
    whole = text.replace("\\\n", "")
    pieces = [*_SPLIT.split(guess(whole)), *_SPLIT_QUOTED.split(whole)]
    return [tuple(piece.split()) for piece in pieces[:_SUSPECTS] if piece.strip()]
