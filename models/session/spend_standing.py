"""How spend limits stand: the cost of their present periods, and the most that requests under way may add.

The costs are sums of `daily_usage`, so they do not depend on the number of turns. An attempt leaves the requests under way and
enters these sums in one transaction, so one statement sees it exactly once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from models.database import clock
from models.database.exchange import Statement
from models.database.query import Query, select
from models.database.rows import Db
from models.session.session import Session
from models.session.turn import Turn
from models.workspace.spend_limit import SpendLimit


@dataclass(frozen=True)
class Standing:
    """A limit and the sums of its present period, in US dollars."""

    limit: SpendLimit
    spent: Decimal
    reserved: Decimal
    """The most that requests under way may cost."""

    def allows(self, dollars: Decimal) -> bool:
        """True if this amount may be spent in addition."""
        return self.limit.amount is None or self.spent + dollars < self.limit.amount


def locking(session_id: str) -> Query[SpendLimit]:
    """Return the query of the limits that apply to a session, with a lock until the transaction ends."""
    return select(SpendLimit, f"WHERE {_APPLIES} ORDER BY id FOR NO KEY UPDATE", session=session_id)


def of_locked(db: Db, session: Session, turn: Turn, limits: Sequence[SpendLimit]) -> list[Standing]:
    """Return the standings of limits that this transaction has locked, so that they include every earlier claim.

    `turn` does not count as under way.
    """
    if not limits:
        return []
    return _joined(limits, db.rows(_LOCKED_SUMS, session=session.id, **starts(session.now), turn=turn.id))


def of_workspace(db: Db) -> list[Standing]:
    """Return all limits of the workspace, without requests under way."""
    limits = select(SpendLimit, "ORDER BY scope_type DESC, scope_id, period")
    return _joined(*db.read(limits, Statement(_ALL_SUMS, starts(clock.now(db)))))


def with_room(db: Db, tool: str) -> list[str]:
    """Return the sessions with a pending approval of `tool` whose limits have room again for the input of the next request."""
    return [session_id for (session_id,) in db.rows(_WITH_ROOM, tool=tool, **starts(clock.now(db)))]


def _joined(limits: Sequence[SpendLimit], sums: Sequence[Sequence[Any]]) -> list[Standing]:
    """Return the standings of these limits. `sums` are `(limit id, spent, reserved)`."""
    amounts = {limit_id: (spent, reserved) for limit_id, spent, reserved in sums}
    return [Standing(limit, *amounts[limit.id]) for limit in limits if limit.id in amounts]


def starts(now: datetime) -> dict[str, Any]:
    """Return the first day of each present period."""
    day = now.astimezone(UTC).date()
    return {"daily": day, "weekly": day - timedelta(days=day.weekday()), "monthly": day.replace(day=1)}


_PERSON = "coalesce(session.on_behalf_of, CASE WHEN cardinality(session.speakers) = 1 THEN session.speakers[1] END)"
"""`Session.spender`, in SQL."""
_OF_SESSION = f"""(
    scope_type = 'workspace' OR (scope_type = 'agent' AND scope_id = session.agent_id)
    OR (scope_type = 'user' AND scope_id = {_PERSON})
)"""
_APPLIES = f"amount IS NOT NULL AND EXISTS (SELECT FROM session WHERE session.id = %(session)s AND {_OF_SESSION})"
_OF_DAY = """(
    scope_type = 'workspace' OR (scope_type = 'agent' AND scope_id = agent_id) OR (scope_type = 'user' AND scope_id = person_id)
)"""
_START = "CASE period WHEN 'daily' THEN %(daily)s::date WHEN 'weekly' THEN %(weekly)s::date ELSE %(monthly)s::date END"
_SPENT = f"""
    SELECT coalesce(sum(cost), 0) FROM daily_usage
    WHERE daily_usage.workspace_id = spend_limit.workspace_id AND day >= {_START} AND {_OF_DAY}
"""  # noqa: S608 - conditions of our own
_RESERVED = f"""
    SELECT coalesce(sum((quote->>'cost')::numeric), 0) FROM turn JOIN session ON session.id = turn.session_id
    WHERE turn.status = 'running' AND turn.id <> %(turn)s AND {_OF_SESSION}
"""  # noqa: S608 - conditions of our own
_LOCKED_SUMS = f"SELECT id, ({_SPENT}), ({_RESERVED}) FROM spend_limit WHERE {_APPLIES}"  # noqa: S608 - conditions of our own
_ALL_SUMS = f"SELECT id, ({_SPENT}), 0::numeric FROM spend_limit"  # noqa: S608 - conditions of our own
_WITH_ROOM = f"""
    WITH standing AS MATERIALIZED (
        SELECT scope_type, scope_id, amount, ({_SPENT}) AS spent FROM spend_limit WHERE amount IS NOT NULL
    )
    SELECT session.id FROM approval JOIN session ON session.id = approval.session_id JOIN turn ON turn.id = session.turn_id
    WHERE approval.status = 'pending' AND approval.kind = 'budget' AND approval.tool = %(tool)s AND NOT EXISTS (
        SELECT FROM standing WHERE spent + coalesce((turn.quote->>'input_cost')::numeric, 0) >= standing.amount AND {_OF_SESSION}
    )
"""  # noqa: S608 - conditions of our own
