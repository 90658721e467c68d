"""Times from a question to its decision, in classes: sums of them tell a median without the single times."""

from bisect import bisect_left
from collections.abc import Mapping

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
BOUNDS = (
    *(1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 45),
    *(_MINUTE, 90, 2 * _MINUTE, 180, 240, 5 * _MINUTE, 420, 10 * _MINUTE, 900, 1200, 30 * _MINUTE, 2700),
    *(_HOUR, 90 * _MINUTE, 2 * _HOUR, 3 * _HOUR, 4 * _HOUR, 6 * _HOUR, 8 * _HOUR, 12 * _HOUR, 16 * _HOUR),
    *(_DAY, 36 * _HOUR, 2 * _DAY, 3 * _DAY, 4 * _DAY, 5 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY),
)
"""Upper bounds of the classes, in seconds. The last class has no bound. Stored rows hold counts in this order: keep it."""
BY_ITSELF = -1
"""The class of an approval that a grant, a deadline or an interrupt closed: nobody's time."""
CLASSES = (BY_ITSELF, *range(len(BOUNDS) + 1))
"""All classes, in the order of a stored row."""
QUICK_SECONDS = 3
"""An allow within this time was hardly read. One of BOUNDS."""
QUICK = BOUNDS.index(QUICK_SECONDS)
"""The last class of a quick decision."""


def wait_of(seconds: float) -> int:
    """Return the class of a time."""
    return bisect_left(BOUNDS, seconds)


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the time below which this share of the decisions lies, in seconds; None without any. `counts`: decisions by class.

    Within a class the times count as evenly spread, so the result is off by at most the width of its class.
    """
    places = sorted(place for place, count in counts.items() if place != BY_ITSELF and count)
    rest = share * sum(counts[place] for place in places)
    for place in places:
        if counts[place] >= rest:
            lower = BOUNDS[place - 1] if place else 0
            upper = BOUNDS[place] if place < len(BOUNDS) else 2 * BOUNDS[-1]
            return lower + (upper - lower) * rest / counts[place]
        rest -= counts[place]
    return None
