"""Patterns of simple commands, such as `git status *`: words as in bash. An unquoted `*` matches any text within one command."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from models.pure.policy.globs import Test, starred
from models.pure.shell import Words, fixed_beginning, plain

_END = "\0"
"""Ends every word, so that a space within a word does not."""
_STAR = "\1"
"""Stands for an unquoted star. No pattern has such a character."""
_SIGNS = re.compile(r"[;|&<>()$`#]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TOKEN = re.compile(
    r"(?P<space> +)|(?P<star>\*)|'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|\\(?P<escaped>.)|(?P<plain>[^ *'\"\\]+)"
)


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern."""

    first: str | None
    """The name of the commands that match, or None if the name itself has a star."""
    everything: bool
    """True for the pattern `*`."""
    test: Test
    """Tests the words of a command, in the form of `join_words`."""
    begin: str
    """The text before the first star."""
    stars: bool
    """True if the pattern has a star."""

    def may_fit(self, begin: str) -> bool:
        """True if a command whose words, in the form of `join_words`, begin with this text may match."""
        return self.begin.startswith(begin) or (self.stars and begin.startswith(self.begin))


def join_words(words: Words) -> str:
    """Return the words as one text, each followed by the end of a word."""
    return _END.join([*words, ""])


def certain_beginning(words: Words) -> str | None:
    """Return the beginning, in the form of `join_words`, that no expansion changes; None if bash expands none of the words."""
    for place, word in enumerate(words):
        beginning = fixed_beginning(word)
        if beginning is not None:
            return join_words(words[:place]) + beginning
    return None


@functools.lru_cache(maxsize=4096)
def compile_pattern(text: str) -> Pattern:
    """Return the compiled pattern of a rule. Raises ValueError."""
    words = tuple(word for word, _ in _words(text))
    if not words:
        raise ValueError("the command pattern is empty; to match every call, write only the tool's name")
    whole = join_words(words)
    if len(words) > 1 and words[-1] == _STAR:
        # A final ` *` also matches no further words.
        whole = whole.removesuffix(_END)
    begin, star, _ = whole.partition(_STAR)
    return Pattern(None if _STAR in words[0] else words[0], words == (_STAR,), starred(whole, star=_STAR), begin, bool(star))


def as_read(text: str) -> str:
    """Return a pattern without options that no command is read with: `git --no-pager log *` is `git log *`. Raises ValueError."""
    words = list(_words(text))
    left_out = len(words) - len(plain(tuple(word for word, _ in words)))
    return text[: words[0][1]] + text[words[left_out][1] :] if left_out else text


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Yield the words of a pattern, each with the place of its end. Quoted and escaped characters are literal, so that an unquoted
    star becomes `_STAR`."""
    if _CONTROL.search(text):
        raise ValueError("the command pattern has a line end, a tab or a control character; a rule is about one simple command")
    word: str | None = None
    end = 0
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            break
        end = token.end()
        if token["space"]:
            if word is not None:
                yield word, token.start()
            word = None
        else:
            word = (word or "") + _part(token, text)
    if end != len(text):
        fault = "ends in a backslash; write it twice" if text[end] == "\\" else f"has an unbalanced {text[end]}; close the quotes"
        raise ValueError(f"the command pattern `{text}` {fault}")
    if word is not None:
        yield word, end


def _part(token: re.Match[str], text: str) -> str:
    if token["star"]:
        return _STAR
    if token["single"] is not None:
        return token["single"]
    if token["double"] is not None:
        return re.sub(r'\\(["\\$`])', r"\1", token["double"])
    if token["escaped"]:
        return token["escaped"]
    if match := _SIGNS.search(token["plain"]):
        sign = "a parenthesis" if match[0] in "()" else f"a `{match[0]}`"
        raise ValueError(f"the command pattern `{text}` has {sign} outside quotes; a rule is about one simple command")
    return token["plain"]
