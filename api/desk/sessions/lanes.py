"""Where the time of a run went: three lanes for the model, tools and people, as places of rectangles in an SVG.

Waits of hours stand beside requests of a second, so each piece of time between two changes is as long as its logarithm. The page
says so. The words above each lane give the real sums.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import log10

from api.desk.sessions.lines import Bar, short

LANES = (("model", "Model"), ("tool", "Tools"), ("person", "People"))
WIDTH, LANE = 216, 72
"""Of the drawing and of each lane, in pixels."""
_MOST_HEIGHT = 520
_LEAST = 3.0
"""Height of the shortest bar."""
_CELL = 4.0
"""Bars of a lane that begin within this height are drawn as one, so that a long session has few of them."""


@dataclass(frozen=True)
class Rectangle:
    """One bar of the drawing."""

    x: float
    y: float
    height: float
    css: str
    words: str
    target: str


@dataclass(frozen=True)
class _Piece:
    """A bar between two heights."""

    bar: Bar
    top: float
    bottom: float


def _cells(pieces: Iterable[_Piece]) -> list[list[_Piece]]:
    """Return the pieces of a lane in groups, from the top: those that begin within the same few pixels are one rectangle."""
    cells: dict[int, list[_Piece]] = {}
    for piece in sorted(pieces, key=lambda piece: piece.top):
        cells.setdefault(int(piece.top / _CELL), []).append(piece)
    return list(cells.values())


def _rectangles(column: float, groups: list[list[_Piece]]) -> Iterator[Rectangle]:
    """Yield the rectangles of a lane. One that stands for several bars ends where the next one begins."""
    for number, group in enumerate(groups):
        first, bars = group[0], [piece.bar for piece in group]
        bottom, bad = max(piece.bottom for piece in group), sum(bar.is_bad for bar in bars)
        words = first.bar.words
        if len(bars) > 1:
            total = short(sum((bar.end - bar.start for bar in bars), timedelta()))
            words = f"{len(bars)} {_NOUNS[first.bar.lane]}, {total}" + (f", {bad} failed" if bad else "")
        if number + 1 < len(groups):
            bottom = max(min(bottom, groups[number + 1][0].top - 0.5), first.top + 1)
        css = f"{first.bar.lane} bad" if bad else first.bar.lane
        yield Rectangle(column, round(first.top, 1), round(bottom - first.top, 1), css, words, first.bar.target)


_NOUNS = {"model": "requests", "tool": "calls", "person": "waits"}


@dataclass(frozen=True)
class Lanes:
    """What `sessions/lanes.html` draws."""

    height: float
    rectangles: Sequence[Rectangle]
    sums: Sequence[tuple[str, str]]
    """The name of each lane, and its sum."""

    @classmethod
    def of(cls, bars: Sequence[Bar]) -> "Lanes | None":
        """Return the drawing of these bars; None without any."""
        if not bars:
            return None
        moments = sorted({moment for bar in bars for moment in (bar.start, max(bar.start, bar.end))})
        places: dict[datetime, float] = {moments[0]: 0.0}
        for before, after in pairwise(moments):
            places[after] = places[before] + _LEAST + 8 * log10(1 + (after - before).total_seconds())
        scale = min(1.0, _MOST_HEIGHT / max(places[moments[-1]], 1))
        columns = {lane: number * LANE for number, (lane, _) in enumerate(LANES)}
        pieces = [
            _Piece(bar, places[bar.start] * scale, max(places.get(bar.end, 0) * scale, places[bar.start] * scale + _LEAST))
            for bar in bars
        ]
        rectangles = [
            rectangle
            for lane, _ in LANES
            for rectangle in _rectangles(columns[lane], _cells(piece for piece in pieces if piece.bar.lane == lane))
        ]
        sums = [(name, short(sum((bar.end - bar.start for bar in bars if bar.lane == lane), timedelta()))) for lane, name in LANES]
        return cls(places[moments[-1]] * scale + _LEAST, rectangles, sums)
