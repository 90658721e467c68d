"""How long to wait before the next try: one policy for everything that is tried again."""

from random import Random

_RANDOM = Random()  # noqa: S311 - jitter is no secret


def backoff(attempt: int, base: float, most: float, told: float | None = None, random: Random = _RANDOM) -> float:
    """Seconds before try `attempt + 1` (`attempt` from 1): doubling from `base` up to `most`, half of it jitter; at least what the
    other side told us to wait (`told`), which is believed up to an hour."""
    wait = min(most, base * 2.0 ** (attempt - 1))
    return max(wait * (0.5 + random.random() / 2), min(told or 0.0, 3600.0))
