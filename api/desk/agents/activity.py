"""What agents did in the last days: sessions, asks, cost, and what waits now. A few queries for all agents of a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from models.database import clock, daily_usage
from models.database.rows import Db
from models.operate.insights.report import AskLine, Span, lines

DAYS = 7
SEARCHED = 20_000
"""Sessions that are counted: the newest, so that the count costs no more in a large workspace."""
_SESSIONS = """
    SELECT agent_id, count(*) FROM (
        SELECT agent_id FROM session WHERE created_at >= %(since)s ORDER BY created_at DESC LIMIT %(most)s
    ) newest
    WHERE agent_id = ANY(%(ids)s) GROUP BY 1
"""
_COST = f"""
    SELECT agent_id, sum(cost) FROM {daily_usage.DAYS}
    WHERE workspace_id = current_setting('assent.workspace') AND day >= %(first)s AND agent_id = ANY(%(ids)s) GROUP BY 1
"""  # noqa: S608 - names of our own


@dataclass(frozen=True)
class Activity:
    """What one agent did in the last DAYS, and what of it waits now."""

    sessions: int = 0
    asks: int = 0
    waiting: int = 0
    waiting_text: str = "0"
    """`waiting` as text: `AskLine.waiting_text`."""
    cost: Decimal = Decimal(0)
    """In US dollars, at list prices."""


def activity_of(db: Db, agent_ids: Sequence[str]) -> dict[str, Activity]:
    """Return the activity of each agent."""
    now, ids = clock.now(db), list(agent_ids)
    span = Span.of(now, now - timedelta(days=DAYS - 1), None)
    since = datetime.combine(span.first, time(), UTC)
    sessions: dict[str, int] = dict(db.rows(_SESSIONS, since=since, most=SEARCHED, ids=ids))
    cost: dict[str, Decimal | None] = dict(db.rows(_COST, first=span.first, ids=ids))
    asks = {line.name: line for line in lines(db, span, "agent")}
    activities = {}
    for id_ in agent_ids:
        line = asks.get(id_) or AskLine(id_)
        of_days = Decimal(cost.get(id_) or 0)
        activities[id_] = Activity(sessions.get(id_, 0), line.asks, line.waiting, line.waiting_text, of_days)
    return activities
