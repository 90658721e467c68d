"""Where the time of a run went: three lanes for the model, tools and people, as places of rectangles in an SVG.

Waits of hours stand beside requests of a second, so each piece of time between two changes is as long as its logarithm. The page
says so. The words above each lane give the real sums.
"""

from collections.abc import Sequence
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
        moments = sorted({moment for bar in bars for moment in (bar.start, bar.end)})
        places: dict[datetime, float] = {moments[0]: 0.0}
        for before, after in pairwise(moments):
            places[after] = places[before] + _LEAST + 8 * log10(1 + (after - before).total_seconds())
        scale = min(1.0, _MOST_HEIGHT / max(places[moments[-1]], 1))
        columns = {lane: number * LANE for number, (lane, _) in enumerate(LANES)}
        rectangles = [
            Rectangle(
                columns[bar.lane],
                round(places[bar.start] * scale, 1),
                round(max((places[bar.end] - places[bar.start]) * scale, _LEAST), 1),
                f"{bar.lane} bad" if bar.is_bad else bar.lane,
                bar.words,
                bar.target,
            )
            for bar in bars
        ]
        sums = [(name, short(sum((bar.end - bar.start for bar in bars if bar.lane == lane), timedelta()))) for lane, name in LANES]
        return cls(places[moments[-1]] * scale + _LEAST, rectangles, sums)
