"""What it costs: by day with each limit as a line, by agent and by model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

from api.desk.insights.numbers import dollars
from api.desk.rendering.charts import Limit, Series, stacked
from models.database import clock
from models.database.rows import Db
from models.operate.insights.report import Span
from models.operate.insights.titles import titles
from models.people.principal import PersonPrincipal
from models.session.spending import standing as spend_standing
from models.session.spending.report import Report, ReportLine, lines
from models.workspace.spend_limit import PERIODS

MOST = 20
_MOST_LINES = 500
_PERIODS = {"daily": (Decimal(1), "day"), "weekly": (Decimal(7), "week"), "monthly": (Decimal(365) / 12, "month")}
"""The days of a limit's period, and what it is called. A month counts as the twelfth part of a year."""


@dataclass(frozen=True)
class CostLine:
    """What one agent or one model costs."""

    name: str
    cost: Decimal
    savings: Decimal
    requests: int
    unpriced: int
    tokens: int
    """Of input and output together."""


def values(db: Db, person: PersonPrincipal, span: Span, agent_id: str = "") -> dict[str, Any]:
    """Return the values of the template."""
    only = {"agent_id": agent_id} if agent_id else {}
    days = _report(db, span, "1d", [], only)
    by_day = {line.bucket.date(): Decimal(line.sums["cost"]) for line in days}
    costs = [by_day.get(day, Decimal(0)) for day in span.days]
    limits = _limits(db, agent_id)
    agents = [] if agent_id else _report(db, span, None, ["agent_id"], only)
    agent_names = titles(db, "agent", [each.groups["agent_id"] for each in agents])
    return {
        "costs": list(zip(span.days, costs, strict=True)),
        "chart": stacked(
            [f"{day:%b} {day.day}" for day in span.days],
            [Series("cost", "accent", [float(cost) for cost in costs])],
            dollars,
            [_per_day(period, amount) for period, _, amount in limits],
        ),
        "sums": _line("", days),
        "limits": limits,
        "agents": _largest([_line(agent_names[each.groups["agent_id"]], [each]) for each in agents]),
        "models": _largest([_line(each.groups["model"], [each]) for each in _report(db, span, None, ["model"], only)]),
        "is_admin": "admin" in person.scopes,
    }


def _limits(db: Db, agent_id: str) -> list[tuple[str, Decimal, Decimal]]:
    """Return the period, what is spent and the amount of each limit of the workspace, or of an agent. The shortest comes first."""
    scope = ("agent", agent_id) if agent_id else ("workspace", None)
    standings = [
        (one.limit.period, one.spent, one.limit.amount)
        for one in spend_standing.of_workspace(db)
        if one.limit.amount is not None and one.limit.scope_type == scope[0] and scope[1] in {None, one.limit.scope_id}
    ]
    return sorted(standings, key=lambda limit: PERIODS.index(limit[0]))


def _per_day(period: str, amount: Decimal) -> Limit:
    """Return a limit as a line of a chart by days: of a week or a month, an equal part for each day."""
    days, each = _PERIODS[period]
    part = amount / days
    words = f"limit of {dollars(amount)} a {each}"
    return Limit(float(part), words if days == 1 else f"{words}, {dollars(part)} for each day")


def _report(db: Db, span: Span, width: str | None, groups: Sequence[str], only: Mapping[str, str]) -> list[ReportLine]:
    first, end = (datetime.combine(day, time(), UTC) for day in (span.first, span.end))
    return lines(db, Report.of(clock.now(db), first, end, width, groups, only), _MOST_LINES)


def _line(name: str, of_lines: Sequence[ReportLine]) -> CostLine:
    sums = [line.sums for line in of_lines]
    tokens = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return CostLine(
        name,
        sum((Decimal(each["cost"]) for each in sums), Decimal(0)),
        sum((Decimal(each["cache_savings"]) for each in sums), Decimal(0)),
        sum(each["requests"] for each in sums),
        sum(each["unpriced_requests"] for each in sums),
        sum(each[token] for each in sums for token in tokens),
    )


def _largest(of_lines: Sequence[CostLine]) -> list[CostLine]:
    return sorted(of_lines, key=lambda line: (-line.cost, -line.requests, line.name))[:MOST]
