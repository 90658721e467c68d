"""Charts as the places of rectangles in an SVG: the macros of `rendering/charts.html` draw them, without scripts and inline styles.

A chart is as wide as its page. Its drawing is stretched, so its words stand around it in HTML, and a table beside it says the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH = 1000
"""Of the drawing, in units of its own: the page stretches them."""
HEIGHT = 100
_GAP = 0.25
"""The part of a slot that is empty."""
_STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 20, 50, 100)
MOST_TICKS = 8
"""Most words below a chart."""


@dataclass(frozen=True)
class Series:
    """Values of one kind, one for each slot of a chart."""

    name: str
    tone: str
    """A class of `charts.css`: `good`, `bad`, `warn`, `accent` or `rest`."""
    values: Sequence[float]


@dataclass(frozen=True)
class Limit:
    """A line across a chart."""

    value: float
    words: str


@dataclass(frozen=True)
class Bar:
    """A rectangle, with the words that a pointer shows."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    words: str


@dataclass(frozen=True)
class Chart:
    """What `charts.html` draws."""

    bars: Sequence[Bar]
    top: str
    """The value at the upper edge, in words."""
    ticks: Sequence[str]
    """Words below the chart, each at the beginning of an equal part of its width."""
    series: Sequence[Series]
    limits: Sequence[tuple[float, Limit]] = ()
    """Each line, with its place from the top."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to draw."""
        return not self.bars


def stacked(slots: Sequence[str], series: Sequence[Series], words: Callable[[float], str], limits: Sequence[Limit] = ()) -> Chart:
    """Return a chart with a stack of bars for each slot, the first series at the bottom. `words` says a value."""
    sums = [sum(values) for values in zip(*(each.values for each in series), strict=True)]
    top = _nice(max([*sums, *(limit.value for limit in limits)], default=0))
    bars = []
    width = WIDTH / max(len(slots), 1)
    for number, slot in enumerate(slots):
        base = float(HEIGHT)
        for each in series:
            height = each.values[number] / top * HEIGHT if top else 0
            if height > 0:
                base -= height
                title = f"{slot}: {words(each.values[number])}" + (f" {each.name}" if len(series) > 1 else "")
                bars.append(Bar(number * width + width * _GAP / 2, base, width * (1 - _GAP), height, each.tone, title))
    lines = [(HEIGHT - limit.value / top * HEIGHT, limit) for limit in limits] if top else []
    drawn = [each for each in series if any(each.values)]
    return Chart(bars, words(top), _ticks(slots), drawn, lines)


def _nice(value: float) -> float:
    """Return the lowest of `_STEPS` times a power of ten that is not below the value."""
    if value <= 0:
        return 0
    power = 10.0 ** (len(f"{int(value)}") - 1) if value >= 1 else 0.01
    return next(power * step for step in _STEPS if power * step >= value)


def _ticks(slots: Sequence[str]) -> list[str]:
    """Return the words below the chart: those of every slot, or of some slots at equal distances, else of the first slot."""
    if len(slots) <= MOST_TICKS:
        return list(slots)
    parts = next((parts for parts in range(MOST_TICKS, 1, -1) if len(slots) % parts == 0), 1)
    return [slots[number * len(slots) // parts] for number in range(parts)]
