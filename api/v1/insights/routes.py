"""Routes of insights: as JSON, and as a table for a spreadsheet."""

from datetime import timedelta
from typing import Literal

from flask import Blueprint, Response
from pydantic import Field

from api.door import auth, parsing, spreadsheet
from api.door.requests import Moment, QueryString
from api.door.routes import CSV, Door, opens, reads
from api.v1.insights.responses import Insight, Insights
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transact
from models.operate.insights.report import Span, lines
from models.operate.insights.titles import titles
from models.workspace.agent import Agent

insights = Blueprint("insights", __name__, url_prefix="/v1/insights")


class InsightQuery(QueryString):
    """GET /v1/insights: what became of the approvals of some days, by day, hour, tool, agent, channel or person."""

    starting_at: Moment | None = None
    """The first day is the one of this time. Left out: 30 days before the end."""
    ending_at: Moment | None = None
    """The last day is the one before or of this time. Left out: today."""
    agent_id: str | None = Field(None, max_length=128, description="Only approvals of this agent.")
    group_by: Literal["day", "hour", "tool", "agent", "channel", "person"] = "day"


@insights.get("")
@reads(InsightQuery, response=Insights)
def index(db: Db, _principal: Principal, query: InsightQuery) -> Insights:
    """Sum up approvals by what became of them and how long decisions took, over the days (UTC) on which people were asked.

    An approval counts on the day of its question: once it is closed, after about a minute, and while it waits, at once, but not by
    `channel` or `person`. Sums stay when sessions are deleted. The days are at most 366.
    """
    return report(db, query)


@insights.get("/csv")
@opens(Door(scopes=("read",), query=InsightQuery, media_type=CSV))
def table() -> Response:
    """Return the same as CSV, a line for each and a first line of headers."""
    principal = auth.authenticate("read")
    query = parsing.query(InsightQuery)
    result = transact(principal.workspace_id, lambda db: report(db, query))
    name = f"insights-by-{query.group_by}-{result.first_day}-to-{result.last_day}"
    return spreadsheet.response(name, _COLUMNS, ([getattr(line, column) for column in _COLUMNS] for line in result.data))


def report(db: Db, query: InsightQuery) -> Insights:
    """Return the report of a query. Raises Invalid for too long a span, or an unknown agent."""
    span = Span.of(clock.now(db), query.starting_at, query.ending_at)
    if query.agent_id:
        Agent.in_field(db, query.agent_id, None, field="agent_id")
    rows = lines(db, span, query.group_by, query.agent_id or "")
    title_of = titles(db, query.group_by, [line.name for line in rows])
    last = span.end - timedelta(days=1)
    return Insights(data=[Insight.of(line, title_of) for line in rows], first_day=str(span.first), last_day=str(last))


_COLUMNS = tuple(name for name in Insight.model_fields if name != "type")
