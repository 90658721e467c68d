"""The known forms of a program: its options, their values, and the number of its operands.

An option list is a text of words:

    -a  --all     an option without a value
    -n: --lines:  an option with a value: the rest of its word, or the next word
    -u? --color?  an option whose value, if there is one, stands in the same word
    --arg::       an option that takes the next two words
    -#            a number (`-5`)

`--help` and `--version` need not be in the list of a program that is covered by more than its name.
Every word that begins with `-` must be such an option, unless `--` stands before it. A value in a separate word must not begin with
`-`, except for a negative number. So even a version of the program whose options take fewer or more values than this list says sees
no option outside the list.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.pure.shell.words import MARK

_MANY = 1_000
"""The number of operands for which a word counts that bash expands to names of files."""
_NUMBER = re.compile(r"-\d+")
_NEGATIVE = re.compile(r"-\d.*", re.DOTALL)
_MAYBE_OPTION = ("-", "*", "?", "[")
"""Beginnings of words that bash may expand to words with `-` in front."""


class _Unknown(Exception):
    """The words are not in a known form."""


@dataclass(frozen=True)
class Program:
    """The known forms of one program."""

    options: str = ""
    """The option list."""
    operands: int | None = None
    """The highest number of operands; None for any number."""
    operand: str | None = None
    """An expression that each operand must match."""
    first: str | None = None
    """An expression that the first operand must match."""
    values: Mapping[str, str] = field(default_factory=dict)
    """An expression that an option's value must match, by option."""
    writes: bool = False
    """True if the program writes files in its known forms. A rule that names such a program covers its other forms as well."""
    by_name: bool = False
    """True if only a rule that names the program covers it, since its configuration or its program text may run others."""
    sends: bool = False
    """True if the program may change something at another machine in its known forms."""
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
        """The signs after each option's name in the option list."""
        names = {word.rstrip(":?"): word for word in self.options.split()}
        return {name: word[len(name) :] for name, word in names.items()}

    def _read(self, rest: list[str]) -> int:
        """Return the number of operands. Raises _Unknown."""
        count, options_ended = 0, False
        while rest:
            word = rest.pop(0)
            if word.startswith(MARK):
                if self.operand or (self.first and not count) or (word[1:].startswith(_MAYBE_OPTION) and not options_ended):
                    raise _Unknown
                count += _MANY
            elif options_ended or word == "-" or not word.startswith("-"):
                _check(self.operand, word)
                _check(None if count else self.first, word)
                count += 1
            elif word == "--" and not self.whole_words:
                options_ended = True
            elif "-#" not in self._kinds or not _NUMBER.fullmatch(word):
                count += self._whole(word, rest) if self.whole_words or word.startswith("--") else self._letters(word, rest)
        return count

    def _whole(self, word: str, rest: list[str]) -> int:
        """Read `--name`, `--name=value` or `-name`. Returns the number of operands that its value may add."""
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
        """Read `-abc`. Returns the number of operands that the value of its last letter may add."""
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
        """Read the next word as the option's value. Returns the number of operands that the word may add."""
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
