"""Reports on approvals of a span of days, from the days' sums: the time does not grow with the number of approvals."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from models.database.rows import Db
from models.errors import Invalid
from models.operate.insights.adding import ABOUT, of_agent
from models.operate.insights.waits import BY_ITSELF, CLASSES, QUICK, quantile

MOST_DAYS = 366
DAYS = 30
"""The span of a report without times."""
MOST_LINES = 500
"""Lines of a report. Of more names, those with the most approvals."""
MOST_WAITING = 1000
"""Most approvals that wait now which a report counts: those with the earliest deadlines. Of more, each count ends with a `+`."""
OUTCOMES = {
    "allowed": "allows",
    "denied": "denials",
    "answered": "answers",
    "expired": "expiries",
    "cancelled": "cancellations",
}
"""What became of approvals, and what a number of them is called."""
GROUPS = ("day", *ABOUT)


@dataclass(frozen=True)
class Span:
    """Whole days (UTC), from `first` up to, but without, `end`."""

    first: date
    end: date

    @classmethod
    def of(cls, now: datetime, starting_at: datetime | None, ending_at: datetime | None) -> "Span":
        """Return the days that these times touch; without times, the last DAYS. Raises Invalid for too long a span."""
        last = min(ending_at or now, now) - timedelta(microseconds=1)
        end = last.astimezone(UTC).date() + timedelta(days=1)
        first = starting_at.astimezone(UTC).date() if starting_at else end - timedelta(days=DAYS)
        if first >= end:
            raise Invalid("starting_at", "must be before ending_at, and not in the future.")
        if (end - first).days > MOST_DAYS:
            raise Invalid("starting_at", f"must be at most {MOST_DAYS} days before ending_at.")
        return cls(first, end)

    @property
    def days(self) -> list[date]:
        """Each day, the first one first."""
        return [self.first + timedelta(days=number) for number in range((self.end - self.first).days)]


@dataclass
class AskLine:
    """The approvals of one day, hour, tool, agent, channel or person."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    """Closed approvals by outcome."""
    waiting: int = 0
    """Approvals that wait now."""
    more_wait: bool = False
    """Whether more may wait than were counted: `MOST_WAITING` were."""
    decisions: Counter[str] = field(default_factory=Counter)
    """Those of the outcomes that a person or an API key decided."""
    waits: Counter[int] = field(default_factory=Counter)
    """These decisions by the class of their time."""
    quick_allows: int = 0
    """Allows within `QUICK_SECONDS`."""

    def count(self, outcome: str, wait: int, asks: int) -> None:
        """Add approvals of one outcome and one class of time."""
        self.outcomes[outcome] += asks
        if wait != BY_ITSELF:
            self.decisions[outcome] += asks
            self.waits[wait] += asks
            self.quick_allows += asks if outcome == "allowed" and wait <= QUICK else 0

    @property
    def waiting_text(self) -> str:
        """How many wait now, as text: `1,000+` if more may wait."""
        return f"{self.waiting:,}" + ("+" if self.more_wait else "")

    @property
    def asks(self) -> int:
        """All approvals, those that wait included."""
        return self.outcomes.total() + self.waiting

    @property
    def allow_rate(self) -> float | None:
        """The share of allows among the allows and denials of people and API keys; None without any."""
        either = self.decisions["allowed"] + self.decisions["denied"]
        return self.decisions["allowed"] / either if either else None

    def seconds(self, share: float) -> float | None:
        """Return the time within which this share of the decisions was made: 0.5 is the median. None without any."""
        return quantile(self.waits, share)

    def add(self, other: "AskLine") -> None:
        """Add the approvals of another line."""
        for counter, more in ((self.outcomes, other.outcomes), (self.decisions, other.decisions), (self.waits, other.waits)):
            counter.update(more)  # type: ignore[arg-type]
        self.waiting += other.waiting
        self.more_wait |= other.more_wait
        self.quick_allows += other.quick_allows


def lines(db: Db, span: Span, group: str, agent_id: str = "") -> list[AskLine]:
    """Return the lines of a group of `GROUPS`: all days and hours in their order, else the name with the most approvals first.

    `agent_id`: only the approvals of this agent.
    """
    rows = [
        (name, outcome, wait, asks)
        for name, outcome, *counts in _sums(db, span, group, agent_id)
        for wait, asks in zip(CLASSES, counts, strict=True)
        if asks
    ]
    by_name = _by_name(rows)
    if group in _WAITING:
        _add_waiting(by_name, _waiting(db, span, group, agent_id))
    if group == "day":
        return [by_name.get(str(day), AskLine(str(day))) for day in span.days]
    if group == "hour":
        return [by_name.get(name, AskLine(name)) for name in (f"{hour:02}" for hour in range(24))]
    return sorted(by_name.values(), key=lambda line: (-line.asks, line.name))[:MOST_LINES]


def total(of_lines: Iterable[AskLine]) -> AskLine:
    """Return the sum of all lines of a group."""
    result = AskLine("")
    for line in of_lines:
        result.add(line)
    return result


def _by_name(rows: Iterable[Sequence[Any]]) -> dict[str, AskLine]:
    result: dict[str, AskLine] = {}
    for name, outcome, wait, asks in rows:
        result.setdefault(name, AskLine(name)).count(outcome, wait, int(asks))
    return result


def _add_waiting(by_name: dict[str, AskLine], rows: Sequence[Sequence[Any]]) -> None:
    """Add what waits to the lines. `rows`: name, approvals of the span that wait, and all that were counted under this name."""
    more = sum(of_any_day for _, _, of_any_day in rows) >= MOST_WAITING
    for name, waiting, _ in rows:
        if name and waiting:
            by_name.setdefault(name, AskLine(name)).waiting = waiting
    for line in by_name.values():
        line.more_wait = more


def _sums(db: Db, span: Span, group: str, agent_id: str) -> Iterable[Sequence[Any]]:
    """Return the sums of the span: name, outcome, and a number for each of CLASSES."""
    about, name = ("channel", "day::text") if group == "day" else (group, "name")  # of all names, channels are the fewest
    only = ""
    if agent_id and group in {"day", "agent"}:
        about, only = "agent", "AND name = %(agent)s"
    elif agent_id:
        about = of_agent(group, agent_id)
    return db.rows(_SUMS.format(name=name, only=only), about=about, agent=agent_id, first=span.first, end=span.end)


def _waiting(db: Db, span: Span, group: str, agent_id: str) -> Sequence[Sequence[Any]]:
    """Return how many approvals of the span wait now, and how many of any day were counted, by name."""
    statement = _PENDING.format(name=_WAITING[group], only="AND agent_id = %(agent)s" if agent_id else "")
    return list(db.rows(statement, agent=agent_id, first=span.first, end=span.end, most=MOST_WAITING))


_COUNTS = ", ".join(f"sum(asks[{place}])" for place in range(1, len(CLASSES) + 1))
_SUMS = f"""
    SELECT {{name}}, outcome, {_COUNTS} FROM daily_asks
    WHERE workspace_id = current_setting('assent.workspace') AND about = %(about)s AND day >= %(first)s AND day < %(end)s {{only}}
    GROUP BY 1, 2
"""  # noqa: S608 - places of our own
_WAITING = {
    "day": "day::text",
    "hour": "to_char(created_at AT TIME ZONE 'UTC', 'HH24')",
    "tool": "tool",
    "agent": "agent_id",
}
"""The name of an approval that waits, in SQL. It has no channel and no person yet."""
_PENDING = """
    SELECT {name}, count(*) FILTER (WHERE day >= %(first)s AND day < %(end)s), count(*) FROM (
        SELECT created_at, (created_at AT TIME ZONE 'UTC')::date AS day, tool, agent_id FROM approval
        WHERE workspace_id = current_setting('assent.workspace') AND status = 'pending' {only}
        ORDER BY expires_at LIMIT %(most)s
    ) waiting
    GROUP BY 1
"""
