"""What an edit changes, line by line, in hunks with some unchanged lines around each change.

    {"old": 12, "new": 12, "lines": [" kept", "-removed", "+added"]}

`old` and `new` are the numbers of the first line before and after the change, from 1.
"""

import difflib
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypedDict

MOST_LINES = 2000
"""Lines of all hunks together."""
MOST_CHARACTERS = 200_000
_CONTEXT = 3
_COMPARED = 4000
"""Lines of both files together. Longer files are not compared line by line."""
_EQUAL_PAIRS = 1_000_000
"""Pairs of equal lines, one of each file. One search for the longest equal part looks at each, in at most some 0.1 s."""
_SECONDS = 0.25
"""CPU time of a comparison."""


class Hunk(TypedDict):
    """Lines that belong together, with the number of the first one in each file."""

    old: int
    new: int
    lines: list[str]


class ChangeSize(NamedTuple):
    """How many lines a change adds to a file and removes from it."""

    added: int
    removed: int
    left_out: int = 0
    """Changed lines beyond the limits, which are not counted by their sign."""
    is_new: bool = False
    """True if there is no such file yet."""

    @classmethod
    def of(cls, change: Iterable[Hunk], left_out: int = 0, *, is_new: bool = False) -> "ChangeSize":
        """Return the size of these hunks."""
        signs = Counter(line[0] for hunk in change for line in hunk["lines"])
        return cls(signs["+"], signs["-"], left_out, is_new)

    @property
    def words(self) -> str:
        """The size in short: `+3 -2`."""
        return f"+{self.added} -{self.removed}" + (f", {self.left_out} more" if self.left_out else "")


def hunks(before: str, after: str) -> tuple[list[Hunk], int]:
    """Return the hunks from `before` to `after`, and the number of changed lines that are left out beyond the limits.

    A line keeps all of its characters but the line feed; a last line without one gets the mark `\\ No newline at end of file`.
    """
    old, new = _lines(before), _lines(after)
    start, end = _same_ends(old, new)
    # Equal lines at both ends are cut off before the comparison, except for the context.
    first, last = max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    result: list[Hunk] = []
    lines = characters = left_out = 0
    for group in _groups(old, new):
        hunk = Hunk(old=first + group[0][1] + 1, new=first + group[0][3] + 1, lines=[])
        for line in _with_signs(group, old, new):
            if lines >= MOST_LINES or characters + len(line) > MOST_CHARACTERS:
                left_out += line[0] != " "
                continue
            hunk["lines"].append(line)
            lines, characters = lines + 1, characters + len(line)
        if hunk["lines"]:
            result.append(hunk)
    return result, left_out


def whole_change(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield every line of both texts behind its sign: first the lines that go, then those that come."""
    start, end = _same_ends(old, new)
    yield from (f" {line}" for line in old[:start])
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    matcher = _matcher(before, after)
    yield from _with_signs(matcher.get_opcodes() if matcher else [_replaced(before, after)], before, after)
    yield from (f" {line}" for line in old[len(old) - end :])


_Code = tuple[str, int, int, int, int]


def _same_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    """Return the numbers of lines that are the same at the beginning and at the end."""
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    end = next((i for i in range(shorter - start) if old[-1 - i] != new[-1 - i]), shorter - start)
    return start, end


def _groups(old: list[str], new: list[str]) -> Iterable[list[_Code]]:
    """Return the changes with their context. Files whose comparison would take too long are one change."""
    matcher = _matcher(old, new)
    return matcher.get_grouped_opcodes(_CONTEXT) if matcher else [[_replaced(old, new)]]


def _matcher(old: list[str], new: list[str]) -> "_Matcher | None":
    """Return a comparison that has ended; None if it would take too long."""
    if len(old) + len(new) <= _COMPARED and _equal_pairs(old, new) <= _EQUAL_PAIRS:
        matcher = _Matcher(old, new)
        with suppress(_TooSlow):
            matcher.get_opcodes()
            return matcher
    return None


def _replaced(old: list[str], new: list[str]) -> "_Code":
    return "replace", 0, len(old), 0, len(new)


def _equal_pairs(old: list[str], new: list[str]) -> int:
    counts = Counter(new)
    return sum(counts[line] for line in old)


class _TooSlow(Exception):
    """The CPU time is used up."""


class _Matcher(difflib.SequenceMatcher[str]):
    """Python's comparison, which ends when its CPU time is used up: it searches again on both sides of each equal part."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        self._until = time.thread_time() + _SECONDS
        super().__init__(None, old, new, autojunk=False)

    def find_longest_match(self, *limits: Any) -> difflib.Match:
        """Return the longest equal part within the limits. Raises _TooSlow."""
        if time.thread_time() > self._until:
            raise _TooSlow
        return super().find_longest_match(*limits)


def _with_signs(group: Iterable[_Code], old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the lines of a group, each behind its sign."""
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            yield from (f" {line}" for line in old[i1:i2])
        else:
            yield from (f"-{line}" for line in old[i1:i2])
            yield from (f"+{line}" for line in new[j1:j2])


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + "\\ No newline at end of file"]
