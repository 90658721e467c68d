"""Numbers as the page prints them."""

from decimal import Decimal

NOTHING = "\N{EN DASH}"
"""Stands where there is no number."""
_UNITS = (("s", 1, 90), ("min", 60, 90 * 60), ("h", 3600, 36 * 3600), ("d", 86_400, float("inf")))
"""Units of time with their seconds, and the seconds from which the next unit is used."""
_A_CENT = Decimal("0.01")


def short_time(seconds: float | None) -> str:
    """Return a length of time in one unit, such as `4.2 s`, `12 min`, `3.4 h` or `2.1 d`; a dash without one."""
    if seconds is None:
        return NOTHING
    unit, size = next((unit, size) for unit, size, end in _UNITS if seconds < end)
    value = seconds / size
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def share(part: float | None) -> str:
    """Return a share in percent; a dash without one."""
    return NOTHING if part is None else f"{100 * part:.0f} %"


def whole(value: float) -> str:
    """Return a number with separators."""
    return f"{value:,.0f}"


def dollars(amount: float | Decimal) -> str:
    """Return an amount of US dollars; below a cent as such."""
    return "under $0.01" if 0 < amount < _A_CENT else f"${amount:,.2f}"
