"""Sums of usage over time, by agent, person, session, thread, turn, provider or model.

A report by days reads the days' sums, so its cost does not depend on the number of turns. A report by hours, sessions, threads or
turns reads the rows of attempts, of a short time or of one session.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from models.database.daily_usage import DAYS, SUMS
from models.database.rows import Db
from models.errors import Invalid
from models.pure.pricing.prices import exact
from models.pure.pricing.usage import COUNTS

DAY = timedelta(days=1)
WIDTHS = {"1d": DAY, "1h": timedelta(hours=1)}
MOST_DAYS = 366
"""The longest time span of a report from the days' sums, or of one session."""
MOST_DAYS_OF_ATTEMPTS = 7
"""The longest time span of a report that reads the attempts of all sessions."""
_DAILY = frozenset({"agent_id", "person_id", "provider", "model"})


@dataclass(frozen=True)
class Report:
    """The parameters of a report, over the time from `starting_at` up to, but without, `ending_at`."""

    starting_at: datetime
    ending_at: datetime
    width: str | None
    """Width of a line: a key of `WIDTHS`. None: one line for the whole time."""
    groups: tuple[str, ...]
    """Columns of `TurnUsage`: one line for each combination of their values."""
    only: Mapping[str, str]
    """Columns of `TurnUsage` with the value that rows must have."""
    daily: bool
    """True if the days' sums suffice."""

    @classmethod
    def of(
        cls,
        now: datetime,
        starting_at: datetime | None,
        ending_at: datetime | None,
        width: str | None,
        groups: Sequence[str],
        only: Mapping[str, str],
    ) -> "Report":
        """Return a report over whole days, or over whole hours if it needs the attempts. Raises Invalid for too long a time."""
        daily = width != "1h" and _DAILY.issuperset({*groups, *only})
        unit = DAY if daily else WIDTHS["1h"]
        end = _up(min(ending_at or now, now), unit)
        start = _down(starting_at or end - (DAY * 30 if daily else DAY), unit)
        most = MOST_DAYS if daily or "session_id" in only else MOST_DAYS_OF_ATTEMPTS
        if start >= end:
            raise Invalid("starting_at", "must be before ending_at, and not in the future.")
        if end - start > DAY * most:
            rest = "" if most == MOST_DAYS else " by hours, sessions, threads or turns; name a session_id for more"
            raise Invalid("starting_at", f"must be at most {most} days before ending_at{rest}.")
        return cls(start, end, width, tuple(sorted(set(groups))), only, daily)


@dataclass(frozen=True)
class ReportLine:
    """The sums of one group in one day, hour or whole report."""

    bucket: datetime
    """Start of the day or hour. `starting_at` is later if the report starts later."""
    starting_at: datetime
    ending_at: datetime
    groups: dict[str, str]
    sums: dict[str, Any]
    """The sums by name, as in `models.pure.pricing.charges.summed`."""

    @property
    def key(self) -> tuple[str, ...]:
        """The key by which lines are ordered, for `lines`."""
        return (self.bucket.isoformat(), *self.groups.values())


def lines(
    db: Db, report: Report, limit: int, after: Sequence[str] | None = None, *, newest_first: bool = False
) -> list[ReportLine]:
    """Return at most `limit` lines in order of time and groups, those behind the key `after`. A group without usage has no line.

    `newest_first`: the newest days or hours come first, so that the limit leaves out the oldest. Not with `after`.
    """
    keys = [_bucket(report), *("coalesce(person_id, '')" if name == "person_id" else name for name in report.groups)]
    values: dict[str, Any] = {"start": report.starting_at, "end": report.ending_at, "limit": limit}
    values |= {f"only_{name}": value for name, value in report.only.items()}
    where = [f"{name} = %(only_{name})s" for name in report.only]
    if after is not None:
        values |= {f"after_{number}": value for number, value in enumerate(after)}
        marks = ["CAST(%(after_0)s AS timestamptz)", *(f"%(after_{number})s" for number in range(1, len(after)))]
        where.append(f"({', '.join(keys)}) > ({', '.join(marks)})")
    sums, source = (_OF_DAYS, _DAYS) if report.daily else (_OF_ATTEMPTS, _ATTEMPTS)
    numbers = ", ".join(str(number) for number in range(1, len(keys) + 1))
    order = numbers.replace("1", "1 DESC", 1) if newest_first else numbers
    statement = f"""
        SELECT {", ".join([*keys, *sums])} FROM {" AND ".join([source, *where])}
        GROUP BY {numbers} ORDER BY {order} LIMIT %(limit)s
    """  # noqa: S608 - names of our own
    return [_line(report, row) for row in db.rows(statement, **values)]


_DAYS = f"""
    {DAYS} WHERE workspace_id = current_setting('assent.workspace')
    AND day >= (CAST(%(start)s AS timestamptz) AT TIME ZONE 'UTC')::date
    AND day < (CAST(%(end)s AS timestamptz) AT TIME ZONE 'UTC')::date
"""
_ATTEMPTS = """
    turn_usage WHERE workspace_id = current_setting('assent.workspace') AND at >= %(start)s AND at < %(end)s
"""
_NAMES = ("requests", "estimated_requests", "unpriced_requests", "cost", "cache_savings", *COUNTS)
_OF_DAYS = tuple(f"sum({name})" for name in _NAMES)
_OF_ATTEMPTS = tuple(f"sum({SUMS[name]})" for name in _NAMES)


def _bucket(report: Report) -> str:
    if report.width is None:
        return "CAST(%(start)s AS timestamptz)"
    if report.daily:
        return "day::timestamp AT TIME ZONE 'UTC'"
    return f"date_trunc('{'day' if report.width == '1d' else 'hour'}', at, 'UTC')"


def _line(report: Report, row: Sequence[Any]) -> ReportLine:
    start, *rest = row
    groups = dict(zip(report.groups, rest, strict=False))
    sums: dict[str, Any] = dict(zip(_NAMES, rest[len(report.groups) :], strict=True))
    amounts = {name: exact(sums[name]) for name in ("cost", "cache_savings")}
    end = start + WIDTHS[report.width] if report.width else report.ending_at
    counts = {name: int(count) for name, count in sums.items() if name not in amounts}
    return ReportLine(start, max(start, report.starting_at), min(end, report.ending_at), groups, counts | amounts)


def _down(at: datetime, unit: timedelta) -> datetime:
    midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (at - midnight) // unit * unit


def _up(at: datetime, unit: timedelta) -> datetime:
    below = _down(at, unit)
    return below if below == at else below + unit
