"""Patterns of simple commands, such as `git status *`: words as bash has them, an unquoted `*` being anything in one command."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from models.pure.policy.globs import Sign, Test, starred
from models.pure.shell import Words, fixed_beginning

_END = "\0"
"""Behind every word, so that a space within a word is no end of it."""
_SIGNS = re.compile(r"[;|&<>()$`#]")
_CLOSED = re.compile(r"[\x00-\x1f\x7f]")
_TOKEN = re.compile(
    r"(?P<space> +)|(?P<star>\*)|'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|\\(?P<escaped>.)|(?P<plain>[^ *'\"\\]+)"
)


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern."""

    first: str | None
    """The name of the commands that it fits, or None if the name is itself a pattern."""
    everything: bool
    """Whether it is `*`."""
    test: Test
    """Over the words of a command as `joined` gives them."""
    begin: str
    """The text before the first star."""
    stars: bool
    """Whether it has a star."""

    def may_fit(self, begin: str) -> bool:
        """Whether some command whose words, as `joined` gives them, begin with this text may fit."""
        return self.begin.startswith(begin) or (self.stars and begin.startswith(self.begin))


def joined(words: Words) -> str:
    """Words as one text, an end behind each."""
    return _END.join([*words, ""])


def certain_beginning(words: Words) -> str | None:
    """The beginning of `joined` words that no expansion changes; None if bash expands none of the words."""
    for place, word in enumerate(words):
        known = fixed_beginning(word)
        if known is not None:
            return joined(words[:place]) + known
    return None


@functools.lru_cache(maxsize=4096)
def compiled(text: str) -> Pattern:
    """The pattern of a rule. Raises ValueError."""
    words = list(_words(text))
    if not words:
        raise ValueError("the command pattern is empty; write the tool's name alone for every call of it")
    first = "".join(part for part in words[0] if isinstance(part, str))
    parts = [part for word in words for part in [*word, _END]]
    if len(words) > 1 and words[-1] == [Sign.ANY]:
        # Whatever follows the end of the word before it, and be it nothing.
        parts.pop()
    stars = Sign.ANY in parts
    begin = "".join(part for part in parts[: parts.index(Sign.ANY) if stars else None] if isinstance(part, str))
    return Pattern(None if Sign.ANY in words[0] else first, words == [[Sign.ANY]], starred(parts), begin, stars)


def _words(text: str) -> Iterator[list[str | Sign]]:
    """The words of a pattern, each as its literal parts and stars. Quotes and backslashes make what they quote literal."""
    if _CLOSED.search(text):
        raise ValueError("the command pattern has a line end, a tab or a control character; a rule is about one simple command")
    word: list[str | Sign] = []
    end = 0
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            break
        end = token.end()
        if token["space"]:
            if word:
                yield word
            word = []
        else:
            word.append(_part(token, text))
    if end != len(text):
        fault = "ends in a backslash; write it twice" if text[end] == "\\" else f"has an unbalanced {text[end]}; close the quotes"
        raise ValueError(f"the command pattern `{text}` {fault}")
    if word:
        yield word


def _part(token: re.Match[str], text: str) -> str | Sign:
    if token["star"]:
        return Sign.ANY
    if token["single"] is not None:
        return token["single"]
    if token["double"] is not None:
        return re.sub(r'\\(["\\$`])', r"\1", token["double"])
    if token["escaped"]:
        return token["escaped"]
    if found := _SIGNS.search(token["plain"]):
        said = "a parenthesis" if found[0] in "()" else f"a `{found[0]}`"
        raise ValueError(f"the command pattern `{text}` has {said} outside quotes; a rule is about one simple command")
    return token["plain"]
