"""The pause before a retry: one policy for everything that is retried."""

from datetime import timedelta
from random import Random

_RANDOM = Random()  # noqa: S311 - jitter is not a secret


def backoff(attempt: int, base: float, most: float, retry_after: float | None = None, random: Random = _RANDOM) -> float:
    """Return the seconds to wait before attempt `attempt + 1`; attempts count from 1.

    The wait doubles from `base` up to `most`; half of it is jitter. It is at least `retry_after`, the seconds that the other side
    named, of which at most an hour counts.
    """
    wait = min(most, base * 2.0 ** (attempt - 1))
    return max(wait * (0.5 + random.random() / 2), min(retry_after or 0.0, 3600.0))


def jitter(pause: timedelta, random: Random = _RANDOM) -> timedelta:
    """Return the pause, longer by up to a tenth, so that rows which failed together do not come back together."""
    return pause * (1 + random.random() / 10)
