"""Times in words, from one moment to another: `31 minutes ago`, `23 hours left`, `Yesterday`."""

from datetime import datetime

_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def ago(moment: datetime, now: datetime) -> str:
    """Return how long before `now` the moment was, such as `31 minutes ago`; `just now` below five seconds or in the future."""
    seconds = (now - moment).total_seconds()
    return "just now" if seconds < 5 else f"{span(seconds)} ago"


def time_left(moment: datetime, now: datetime) -> str:
    """Return how much time is left until the moment, such as `23 hours left`; `overdue` once it has passed."""
    seconds = (moment - now).total_seconds()
    return "overdue" if seconds <= 0 else f"{span(seconds)} left"


def span(seconds: float) -> str:
    """Return a length of time in its largest unit, rounded down: `2 days`, `23 hours`, `1 minute`, `0 seconds`."""
    for unit, size in _UNITS:
        if seconds >= size:
            return number_with_noun(int(seconds // size), unit)
    return "0 seconds"


def day_of(moment: datetime, now: datetime) -> str:
    """Return a day in words, in UTC: `Today`, `Yesterday`, `Friday, 20 November`."""
    days = (now.date() - moment.date()).days
    if days < 2:
        return "Yesterday" if days == 1 else "Today"
    year = f" {moment.year}" if moment.year != now.year else ""
    return f"{moment:%A}, {moment.day} {moment:%B}{year}"


def number_with_noun(number: int, noun: str) -> str:
    """Return a number with its noun: `1 minute`, `31 minutes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
