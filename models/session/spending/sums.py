"""Changes of the running sums of spend limits (`SpendSum`), which the commit of a transaction makes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from models.database.exchange import Statement
from models.database.rows import Db
from models.workspace.spend_limit import NO_NEW_LIMIT
from models.workspace.spend_sum import BY_INDEX, newest

_AMOUNT = r"\d+(\.\d+)?"
"""The form of an amount in a quote, in Python and SQL."""


def spend(db: Db, agent_id: str, person_id: str | None, at: datetime, dollars: Decimal) -> None:
    """Have the commit add the cost of a request that ended at `at`."""
    _add(db, _Change(agent_id, person_id, at, spent=dollars))


def release(db: Db, agent_id: str, quote: Mapping[str, Any], at: datetime) -> None:
    """Have the commit remove what a request reserved that is no longer under way. `quote` is `Turn.quote`.

    A quote that cannot be read does not say what it reserved. Its turn ends all the same, and what all limits of the workspace
    reserve is counted anew from the requests that are under way.
    """
    dollars = _cost(quote)
    if dollars is None:
        db.closing["sums", "spend_limit", "1"] = NO_NEW_LIMIT
        db.closing["sums", "spend_limit", "1 of all"] = Statement(_LOCK_ALL, {})
        db.closing["sums", "spend_limit", "4"] = Statement(_COUNT_ANEW, {})
        return
    _add(db, _Change(agent_id, quote.get("person"), at, reserved=-dollars))


def _cost(quote: Any) -> Decimal | None:
    """Return the cost of a quote, 0 if its price is not known; None for a quote that cannot be read."""
    if not isinstance(quote, dict) or ("cost" not in quote and "price" in quote):
        return None
    cost = quote.get("cost", "0")
    return Decimal(cost) if isinstance(cost, str) and re.fullmatch(_AMOUNT, cost, re.ASCII) else None


@dataclass(frozen=True)
class _Change:
    """What a request changes in the sums of the limits that apply to it."""

    agent_id: str
    person_id: str | None
    at: datetime
    spent: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)


def _add(db: Db, change: _Change) -> None:
    if not (change.spent or change.reserved):
        return
    first = Statement(_ADD, {"agents": [], "days": [], "people": [], "spent": [], "reserved": []})
    values = db.closing.setdefault(("sums", "spend_limit", "3"), first).values
    db.closing["sums", "spend_limit", "1"] = Statement(f"{NO_NEW_LIMIT.sql}, {BY_INDEX}", {})
    db.closing["sums", "spend_limit", "2"] = Statement(_LOCK, values)
    values["agents"].append(change.agent_id)
    values["days"].append(change.at.astimezone(UTC).date())
    values["people"].append(change.person_id)
    values["spent"].append(change.spent)
    values["reserved"].append(change.reserved)


def applies(agent: str, person: str) -> str:
    """Return the condition, in SQL, of the limits of an agent and a person."""
    return f"""(
        scope_type = 'workspace' OR (scope_type = 'agent' AND scope_id = {agent}) OR (scope_type = 'user' AND scope_id = {person})
    )"""


RESERVED = f"""(
    SELECT coalesce(sum((turn.quote ->> 'cost')::numeric) FILTER (WHERE turn.quote ->> 'cost' ~ '^{_AMOUNT}$'), 0)
    FROM turn JOIN thread ON thread.session_id = turn.session_id AND thread.id = turn.thread_id
    WHERE turn.status = 'running' AND {applies("thread.agent_id", "turn.quote ->> 'person'")}
)"""  # noqa: S608 - conditions of our own
"""What the requests under way reserve at a row of `spend_limit`, in SQL. A quote that cannot be read reserves nothing."""
_LOCK_ALL = "SELECT id FROM spend_limit WHERE workspace_id = current_setting('assent.workspace') ORDER BY id FOR NO KEY UPDATE"
_COUNT_ANEW = f"""
    UPDATE spend_sum SET number = number + 1, reserved = {RESERVED} FROM spend_limit
    WHERE limit_id = spend_limit.id AND spend_limit.workspace_id = current_setting('assent.workspace')
"""  # noqa: S608 - conditions of our own
"""Counts what the limits reserve that `_LOCK_ALL` has locked."""
_OF_THESE = f"""
    workspace_id = current_setting('assent.workspace') AND {applies("ANY(%(agents)s::text[])", "ANY(%(people)s::text[])")}
"""
_LOCK = f"SELECT id FROM spend_limit WHERE {_OF_THESE} ORDER BY id FOR NO KEY UPDATE"  # noqa: S608 - conditions of our own
_ADD = f"""
    WITH own AS (
        SELECT id, scope_type, scope_id, period, newest.* FROM spend_limit
        {newest("number, since, spent, reserved")} WHERE {_OF_THESE}
    ), part AS (
        SELECT own.*, added.dollars, added.held,
            date_trunc(CASE period WHEN 'daily' THEN 'day' WHEN 'weekly' THEN 'week' ELSE 'month' END, added.day::timestamp)::date
            AS start
        FROM own
        JOIN unnest(%(agents)s::text[], %(days)s::date[], %(people)s::text[], %(spent)s::numeric[], %(reserved)s::numeric[])
            AS added (agent, day, person, dollars, held) ON {applies("added.agent", "added.person")}
    ), present AS (
        SELECT *, greatest(since, max(start) OVER (PARTITION BY id)) AS newest FROM part
    ), total AS (
        SELECT id, number, newest, CASE WHEN since = newest THEN spent ELSE 0 END
            + coalesce(sum(dollars) FILTER (WHERE start = newest), 0) AS spent, reserved + sum(held) AS reserved
        FROM present GROUP BY id, number, newest, since, spent, reserved
    )
    UPDATE spend_sum SET number = total.number + 1, since = newest, spent = total.spent, reserved = total.reserved
    FROM total WHERE limit_id = total.id AND spend_sum.number = total.number
        AND limit_id = ANY(ARRAY(SELECT id FROM own)) AND spend_sum.number = ANY(ARRAY(SELECT number FROM own))
"""  # noqa: S608 - conditions of our own
"""Changes the sums of the limits that `_LOCK` has locked. A cost of an earlier period than the row's changes nothing. The arrays
say again which rows these are: Postgres expects one row in the table, and would read its whole index for a join."""
