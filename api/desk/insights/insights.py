"""The page of insights, for whoever reads the workspace: what was asked, how people decide, what it costs, over some days."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from flask import request

from api.desk.insights import asking, cost, deciding, numbers
from api.desk.shell.blueprint import page
from api.door.framed import FramedPage, query_value
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid
from models.operate.insights.report import Span
from models.operate.insights.titles import agents_in_use
from models.people.principal import PersonPrincipal
from models.workspace.agent import Agent

TABS: dict[str, tuple[str, Callable[[Db, PersonPrincipal, Span, str], dict[str, Any]]]] = {
    "asks": ("Asks", asking.values),
    "people": ("People", deciding.values),
    "cost": ("Cost", cost.values),
}
_RANGES = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "A year"}


@page("/inbox/insights", "insights", "read")
def insights(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show one tab, over the days that the address names, by default the last 30, and for one agent or all."""
    tab = query_value("show") or ""
    tab = tab if tab in TABS else "asks"
    span, chosen_range, fault = _span(clock.now(db))
    days = {"days": chosen_range} if chosen_range else {"first": str(span.first), "last": str(span.end - timedelta(days=1))}
    agent_id = query_value("agent") or ""
    agent_name = str(Agent.find(db, agent_id).at(db).body["name"]) if agent_id else ""
    of_agent = {"agent": agent_id} if agent_id else {}
    agents = agents_in_use(db)
    return FramedPage(
        f"insights/{tab}.html",
        tab=tab,
        tabs=[(label, _address(show=name, **days, **of_agent), name == tab) for name, (label, _) in TABS.items()],
        ranges=[(label, _address(show=tab, days=value, **of_agent), value == chosen_range) for value, label in _RANGES.items()],
        chosen_range=chosen_range,
        span=span,
        last=span.end - timedelta(days=1),
        fault=fault,
        csv=lambda path, **query: _csv(span, path, **query, **({"agent_id": agent_id} if agent_id else {})),
        same_days=days,
        agent_id=agent_id,
        agent_name=agent_name,
        all_agents=agents if not agent_id or agent_id in dict(agents) else [(agent_id, agent_name), *agents],
        numbers=numbers,
        **TABS[tab][1](db, person, span, agent_id),
    )


def _span(now: datetime) -> tuple[Span, str, str]:
    """Return the days of the address, which of the ranges they are, and a fault: then the days are the last 30."""
    first, last = query_value("first"), query_value("last")
    if first or last:
        try:
            starting_at = _midnight(first) if first else None
            return Span.of(now, starting_at, _midnight(last) + timedelta(days=1) if last else None), "", ""
        except Invalid as fault:
            return (
                Span.of(now, None, None),
                "30",
                str(fault).replace("starting_at", "The first day").replace("ending_at", "the last"),
            )
        except (ValueError, OverflowError):
            return Span.of(now, None, None), "30", "A day has the form 2026-11-26."
    days = request.args.get("days", "30")
    days = days if days in _RANGES else "30"
    return Span.of(now, now - timedelta(days=int(days) - 1), None), days, ""


def _midnight(text: str) -> datetime:
    return datetime.combine(date.fromisoformat(text), time(), UTC)


def _address(**query: str) -> str:
    return f"/inbox/insights?{urlencode(query)}"


def _csv(span: Span, path: str, **query: str) -> str:
    """Return the address of a table for a spreadsheet, over the same days."""
    ends = {"starting_at": f"{span.first}T00:00:00Z", "ending_at": f"{span.end}T00:00:00Z"}
    return f"{path}?{urlencode(ends | query)}"
