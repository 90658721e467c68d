"""Usage per day and agent, with its cost and savings, and the spend limits."""

from decimal import Decimal
from typing import Any

from api.inbox.blueprint import inbox
from api.inbox.door import Page, page, shows
from models.database import clock
from models.database.rows import Db
from models.people.principal import PersonPrincipal
from models.session import spend_standing
from models.session.usage_report import Line, Report, lines

_MOST = 500
_NAMES = """
    SELECT id, email FROM person WHERE id = ANY(%(ids)s)
    UNION ALL SELECT id, body->>'name' FROM agent JOIN agent_version ON agent_id = id AND agent_version.version = agent.version
    WHERE id = ANY(%(ids)s)
"""


@inbox.get("/inbox/usage")
@page("usage", "admin")
def usage(db: Db, _person: PersonPrincipal) -> Page:
    """The last 30 days, the newest first."""
    report = Report.of(clock.now(db), None, None, "1d", ["agent_id"], {})
    rows = lines(db, report, _MOST + 1)
    standings = spend_standing.of_workspace(db)
    scopes = [one.limit.scope_id for one in standings]
    names: dict[str, str] = dict(db.rows(_NAMES, ids=scopes + [row.groups["agent_id"] for row in rows]))
    return shows(
        "usage.html",
        rows=[_shown(row, names) for row in reversed(rows[:_MOST])],
        is_cut=len(rows) > _MOST,
        limits=[(one, names.get(one.limit.scope_id, "All sessions")) for one in standings],
    )


def _shown(line: Line, names: dict[str, str]) -> dict[str, Any]:
    """Return a line as the table prints it. A cost is None if no request has a price."""
    sums, agent_id = line.sums, line.groups["agent_id"]
    is_priced = sums["unpriced_requests"] < sums["requests"]
    context = sum(sums[name] for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
    return {
        "day": line.bucket.date().isoformat(),
        "agent": names.get(agent_id, agent_id),
        "requests": sums["requests"],
        "input": context,
        "output": sums["output_tokens"],
        "cost": Decimal(sums["cost"]) if is_priced else None,
        "savings": Decimal(sums["cache_savings"]) if is_priced else None,
        "unpriced": sums["unpriced_requests"],
    }
