"""The forms in which a program is known: its options, which of them take a value, and how many operands it may have.

An option list is a text of words:

    -a  --all     an option without a value
    -n: --lines:  an option with a value: the rest of its word, or the next word
    -u? --color?  an option whose value, if there is one, stands in the same word
    --arg::       an option that takes the next two words
    -#            a number (`-5`)

`--help` and `--version` need not be in the list of a program that is covered by more than its name.
Every word that begins with `-` must be such an option, unless `--` stands before it. A value in a word of its own may not begin
with `-`, except for a negative number. So a program whose options take fewer or more values on some machine than this list says
still sees no option that is not in the list.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.pure.shell.words import MARK

_MANY = 1_000
"""Operands that a word counts for which bash replaces by names of files."""
_NUMBER = re.compile(r"-\d+")
_NEGATIVE = re.compile(r"-\d.*", re.DOTALL)
_MAYBE_OPTION = ("-", "*", "?", "[")
"""How a word begins that bash may replace by words that begin with `-`."""


class _Unknown(Exception):
    """The words are not in a known form."""


@dataclass(frozen=True)
class Program:
    """What is known of one program."""

    options: str = ""
    """The option list."""
    operands: int | None = None
    """How many words may be no options; None for any number."""
    operand: str | None = None
    """An expression that each operand must fit."""
    first: str | None = None
    """An expression that the first operand must fit."""
    values: Mapping[str, str] = field(default_factory=dict)
    """By option: an expression that its value must fit."""
    writes: bool = False
    """True if the program writes files in its known forms. A rule that names such a program covers its other forms, too."""
    by_name: bool = False
    """True if only a rule that names the program covers it: its configuration or the text of its program may run others."""
    whole_words: bool = False
    """True if options are whole words with one dash (`find -name`)."""
    attached: bool = True
    """False if the value of a one-letter option must be a word of its own."""

    def knows(self, args: Sequence[str]) -> bool:
        """True if these words after the program's name are in a known form."""
        try:
            count = self._read(list(args))
        except _Unknown:
            return False
        return self.operands is None or count <= self.operands

    @functools.cached_property
    def _kinds(self) -> dict[str, str]:
        """What follows each option's name in the option list."""
        names = {word.rstrip(":?"): word for word in self.options.split()}
        return {name: word[len(name) :] for name, word in names.items()}

    def _read(self, rest: list[str]) -> int:
        """How many operands the words have. Raises _Unknown."""
        count, ended = 0, False
        while rest:
            word = rest.pop(0)
            if word.startswith(MARK):
                if self.operand or (self.first and not count) or (word[1:].startswith(_MAYBE_OPTION) and not ended):
                    raise _Unknown
                count += _MANY
            elif ended or word == "-" or not word.startswith("-"):
                _check(self.operand, word)
                _check(None if count else self.first, word)
                count += 1
            elif word == "--" and not self.whole_words:
                ended = True
            elif "-#" not in self._kinds or not _NUMBER.fullmatch(word):
                count += self._whole(word, rest) if self.whole_words or word.startswith("--") else self._letters(word, rest)
        return count

    def _whole(self, word: str, rest: list[str]) -> int:
        """Read `--name`, `--name=value` or `-name`; how many operands its value may be besides."""
        if word in {"--help", "--version"} and not (self.whole_words or self.by_name):
            return 0
        name, equals, value = (word, "", "") if self.whole_words else word.partition("=")
        kind = self._kinds.get(name)
        if kind is None or (equals and kind not in {":", "?"}):
            raise _Unknown
        if equals:
            _check(self.values.get(name), value)
            return 0
        return sum(self._next(name, rest) for sign in kind if sign == ":")

    def _letters(self, word: str, rest: list[str]) -> int:
        """Read `-abc`; how many operands the value of its last letter may be besides."""
        for at, letter in enumerate(word[1:], 2):
            name, value = f"-{letter}", word[at:]
            kind = self._kinds.get(name)
            if kind is None or (kind and value and not self.attached):
                raise _Unknown
            if kind == "?" or (kind and value):
                _check(self.values.get(name), value)
                return 0
            if kind:
                return self._next(name, rest)
        return 0

    def _next(self, name: str, rest: list[str]) -> int:
        """Read the next word as the option's value; how many operands that word may be besides."""
        word = rest.pop(0) if rest else "--"
        if word.startswith(MARK):
            if name in self.values or self.first or self.operand or word[1:].startswith(_MAYBE_OPTION):
                raise _Unknown
            return _MANY
        if word.startswith("-") and word != "-" and not _NEGATIVE.fullmatch(word):
            raise _Unknown
        _check(self.values.get(name), word)
        return 0


def _check(pattern: str | None, text: str) -> None:
    if pattern is not None and not re.fullmatch(pattern, text, re.DOTALL):
        raise _Unknown
