"""What it costs: by day with the limit as a line, by agent and by model."""

from collections.abc import Sequence
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

MOST = 20
_MOST_LINES = 500


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


def values(db: Db, person: PersonPrincipal, span: Span) -> dict[str, Any]:
    """Return the values of the template."""
    days = _report(db, span, "1d", [])
    by_day = {line.bucket.date(): Decimal(line.sums["cost"]) for line in days}
    costs = [by_day.get(day, Decimal(0)) for day in span.days]
    limits = [
        one for one in spend_standing.of_workspace(db) if one.limit.scope_type == "workspace" and one.limit.amount is not None
    ]
    daily = next((one.limit.amount for one in limits if one.limit.period == "daily"), None)
    line = Limit(float(daily), f"limit of {dollars(daily)} a day") if daily is not None else None
    agents = _report(db, span, None, ["agent_id"])
    agent_names = titles(db, "agent", [each.groups["agent_id"] for each in agents])
    return {
        "costs": list(zip(span.days, costs, strict=True)),
        "chart": stacked(
            [f"{day:%b} {day.day}" for day in span.days], [Series("cost", "accent", [float(cost) for cost in costs])], dollars, line
        ),
        "sums": _line("", days),
        "limits": [(one.limit.period, one.spent, one.limit.amount) for one in limits],
        "agents": _largest([_line(agent_names[each.groups["agent_id"]], [each]) for each in agents]),
        "models": _largest([_line(each.groups["model"], [each]) for each in _report(db, span, None, ["model"])]),
        "is_admin": "admin" in person.scopes,
    }


def _report(db: Db, span: Span, width: str | None, groups: Sequence[str]) -> list[ReportLine]:
    first, end = (datetime.combine(day, time(), UTC) for day in (span.first, span.end))
    return lines(db, Report.of(clock.now(db), first, end, width, groups, {}), _MOST_LINES)


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
