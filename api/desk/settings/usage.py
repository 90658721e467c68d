"""Usage per day and agent, with its cost and savings, and the spend limits, which admins set and delete here."""

from decimal import Decimal
from typing import Any

from flask import request

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.spending.spend_limits.requests import SpendLimitSet
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid, Refusal
from models.flow.spend import limits
from models.people.principal import PersonPrincipal
from models.pure.pricing.prices import cents_in
from models.session.spending import standing as spend_standing
from models.session.spending.report import Report, ReportLine, lines
from models.workspace.spend_limit import SpendLimit

_MOST = 500
_CHOICES = 200
_AGENTS = """
    SELECT id, body->>'name' AS name FROM agent JOIN agent_version ON agent_id = id AND agent_version.version = agent.version
"""
_NAMES = f"SELECT id, name FROM person WHERE id = ANY(%(ids)s) UNION ALL {_AGENTS} WHERE id = ANY(%(ids)s)"  # noqa: S608 - text of our own
_NEWEST_AGENTS = f"{_AGENTS} WHERE archived_at IS NULL ORDER BY id DESC LIMIT %(most)s"
_PEOPLE = """
    SELECT id, concat(name, ', ', email) FROM person JOIN member ON person_id = id
    WHERE member.workspace_id = %(workspace)s AND deactivated_at IS NULL
    ORDER BY name, email LIMIT %(most)s
"""


@page("/inbox/usage", "usage", "admin")
def usage(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None, **_path_ids: str) -> FramedPage:
    """Show the spend limits, and the usage of the last 30 days: newest first, and of a day the most costly first."""
    report = Report.of(clock.now(db), None, None, "1d", ["agent_id"], {})
    rows = lines(db, report, _MOST + 1, newest_first=True)
    standings = spend_standing.of_workspace(db)
    scope_ids = [standing.limit.scope_id for standing in standings]
    names: dict[str, str] = dict(db.rows(_NAMES, ids=scope_ids + [row.groups["agent_id"] for row in rows]))
    return FramedPage(
        "settings/usage.html",
        rows=sorted((_row(row, names) for row in rows[:_MOST]), key=lambda row: (row["day"], row["cost"] or -1), reverse=True),
        is_cut=len(rows) > _MOST,
        limits=[(standing, names.get(standing.limit.scope_id, "All sessions")) for standing in standings],
        refusal=str(refusal or ""),
    )


@page("/inbox/usage/new", "usage", "admin")
def new_limit(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form of a spend limit."""
    return FramedPage("settings/new_limit.html", scopes=_scopes(db, person), refusal=str(refusal or ""), form=request.form)


def _scopes(db: Db, person: PersonPrincipal) -> dict[str, list[tuple[str, str]]]:
    """Return the scopes that a limit can have, by heading: each as a value of the form's field `scope`, and a name."""
    agents = db.rows(_NEWEST_AGENTS, most=_CHOICES)
    people = db.rows(_PEOPLE, workspace=person.workspace_id, most=_CHOICES)
    return {
        "Workspace": [(f"workspace {person.workspace_id}", "All sessions")],
        "Agents": [(f"agent {agent_id}", name) for agent_id, name in agents],
        "People": [(f"user {person_id}", name) for person_id, name in people],
    }


@action("/inbox/usage/limits", "admin", section="usage", again=new_limit)
def set_limit(db: Db, person: PersonPrincipal) -> str:
    """Set the limit of a scope in a period, in the place of the former one."""
    kind, _, scope_id = request.form.get("scope", "").partition(" ")
    try:
        amount = cents_in(request.form.get("amount", ""))
    except ValueError as error:
        raise Invalid("amount", str(error)) from None
    scope = {"type": kind, f"{kind}_id": scope_id}
    body = validated(SpendLimitSet, {"amount": amount, "scope": scope, "period": request.form.get("period", "")})
    limits.set_limit(db, person, body.scope_key, body.period, body.dollars)
    return "/inbox/usage"


@action("/inbox/usage/limits/<spend_limit_id>/delete", "admin", section="usage", again=usage)
def delete_limit(db: Db, person: PersonPrincipal, spend_limit_id: str) -> str:
    """Delete a limit. Sessions that wait at the limit go on within a minute."""
    SpendLimit.remove(db, person, spend_limit_id)
    return "/inbox/usage"


def _row(line: ReportLine, names: dict[str, str]) -> dict[str, Any]:
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
