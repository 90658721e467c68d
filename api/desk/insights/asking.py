"""What agents ask: asks by day and hour, by tool and agent, and the calls that are asked about most."""

from collections.abc import Sequence
from typing import Any

from api.desk.insights import numbers
from api.desk.rendering.charts import Series, stacked
from models.briefing.tool_name import tool_in_words
from models.database.rows import Db
from models.operate.insights.newest import AlikeAsks, most_frequent, newest
from models.operate.insights.report import AskLine, Span, lines, total
from models.operate.insights.titles import titles
from models.people.principal import PersonPrincipal

MOST = 20
"""Lines of a table. The CSV has all."""
_TONES = {
    "allowed": ("allowed", "good"),
    "denied": ("denied", "bad"),
    "answered": ("answered", "accent"),
    "expired": ("expired", "warn"),
    "cancelled": ("cancelled", "rest"),
}
"""What became of asks, from the bottom of a bar: its words and its tone."""


def values(db: Db, person: PersonPrincipal, span: Span, agent_id: str = "") -> dict[str, Any]:
    """Return the values of the template."""
    days = lines(db, span, "day", agent_id)
    recent = newest(db, agent_id)
    groups = ("tool",) if agent_id else ("tool", "agent")
    return {
        "days": days,
        "sums": total(days),
        "chart": stacked([f"{day:%b} {day.day}" for day in span.days], [*_series(days), _waiting(days)], numbers.whole),
        "hours": (hours := lines(db, span, "hour", agent_id)),
        "hour_chart": stacked([line.name for line in hours], [*_series(hours), _waiting(hours)], numbers.whole),
        "groups": {group: _with_titles(db, group, lines(db, span, group, agent_id)[:MOST]) for group in groups},
        "frequent": [(each, _words(each)) for each in most_frequent(recent, MOST)],
        "recent": len(recent),
        "may_decide": "approvals" in person.scopes,
        "may_change": "agents" in person.scopes,
    }


def _series(of_lines: Sequence[AskLine]) -> list[Series]:
    return [Series(words, tone, [line.outcomes[outcome] for line in of_lines]) for outcome, (words, tone) in _TONES.items()]


def _waiting(of_lines: Sequence[AskLine]) -> Series:
    return Series("waiting", "waiting", [line.waiting for line in of_lines])


def _words(calls: AlikeAsks) -> str:
    return tool_in_words(calls.words) if calls.words == calls.tool else calls.words


def _with_titles(db: Db, group: str, of_lines: Sequence[AskLine]) -> list[tuple[str, AskLine]]:
    """Return lines with their titles."""
    title_of = titles(db, group, [line.name for line in of_lines])
    return [(tool_in_words(line.name) if group == "tool" else title_of[line.name], line) for line in of_lines]
