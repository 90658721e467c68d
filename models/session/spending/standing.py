"""How spend limits stand: the cost of their present periods, and the most that requests under way may add.

Both are running sums in the limit's row, so a claim takes the same time however much was spent. A claim reserves the most that its
request may cost. The transaction that ends the attempt removes this and adds the cost (`models.session.spending.sums`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from models.database import clock
from models.database.exchange import Statement
from models.database.query import Query, select
from models.database.rows import Db
from models.pure.pricing.charges import Charge
from models.session.locked import Locked
from models.session.spending.sums import applies
from models.workspace.spend_limit import NO_NEW_LIMIT, SpendLimit, starts


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


def applying(session_id: str, turn_id: str) -> tuple[Statement, Query[SpendLimit]]:
    """Return the statements that keep new limits out until the transaction ends, and read the limits that apply to a turn."""
    return NO_NEW_LIMIT, select(SpendLimit, _OF_TURN, session=session_id, turn=turn_id)


def lock_limits(locked: Locked, limits: Sequence[SpendLimit]) -> list[Standing]:
    """Lock the limits that `applying` read, until the transaction ends, and return their standings, with every earlier claim.

    All claims at these limits wait for each other: so this is the last read before the commit.
    """
    if not limits:
        return []
    rows = locked.db.find(SpendLimit, "WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE", ids=[limit.id for limit in limits])
    return [Standing(row, row.spent_at(locked.now), row.reserved) for row in rows]


def reserve(standings: Sequence[Standing], charge: Charge) -> None:
    """Count a request that begins, whose quote is `charge`, at these limits, which are locked."""
    for standing in standings:
        standing.limit.reserved = standing.reserved + (charge.cost or Decimal(0))


def start(db: Db, limit: SpendLimit) -> None:
    """Set the sums of a new limit, from which the workspace's transactions are kept out (`SpendLimit.put`)."""
    values = {"type": limit.scope_type, "scope": limit.scope_id, "since": limit.since}
    [(limit.spent, limit.reserved)] = db.rows(_SUMS, **values)


def of_workspace(db: Db) -> list[Standing]:
    """Return the standings of all limits of the workspace."""
    now = clock.now(db)
    limits = db.find(SpendLimit, "ORDER BY scope_type DESC, scope_id, period")
    return [Standing(limit, limit.spent_at(now), limit.reserved) for limit in limits]


def with_room(db: Db, of_kind: str, tool: str, after: str, most: int) -> list[str]:
    """Return sessions with a pending approval of `tool` whose limits have room again for the input of the next request.

    `of_kind`: an SQL condition, the kind of these approvals, so that an index finds them.

    At most `most`, in the order of their ids, those behind the id `after`.
    """
    values = {"tool": tool, "after": after, "most": most, **starts(clock.now(db))}
    return [session_id for (session_id,) in db.rows(_WITH_ROOM.format(of_kind=of_kind), **values)]


_PERSON = "coalesce(session.on_behalf_of, CASE WHEN cardinality(session.speakers) = 1 THEN session.speakers[1] END)"
"""`Session.spender`, in SQL."""
_OF_THREAD = applies("thread.agent_id", _PERSON)
_OF_TURN = f"""
    WHERE EXISTS (SELECT FROM session JOIN thread ON thread.session_id = session.id
        WHERE session.id = %(session)s AND thread.turn_id = %(turn)s AND {_OF_THREAD})
"""
_START = "CASE period WHEN 'daily' THEN %(daily)s::date WHEN 'weekly' THEN %(weekly)s::date ELSE %(monthly)s::date END"
_SUMS = f"""
    SELECT (
        SELECT coalesce(sum(cost), 0) FROM daily_usage
        WHERE workspace_id = current_setting('assent.workspace') AND day >= %(since)s AND {applies("agent_id", "person_id")}
    ), (
        SELECT coalesce(sum((quote->>'cost')::numeric), 0) FROM turn
        JOIN thread ON thread.session_id = turn.session_id AND thread.id = turn.thread_id
        WHERE turn.status = 'running' AND {applies("thread.agent_id", "turn.quote->>'person'")}
    ) FROM (SELECT %(type)s::text AS scope_type, %(scope)s::text AS scope_id) spend_limit
"""  # noqa: S608 - conditions of our own
_WITH_ROOM = f"""
    WITH standing AS MATERIALIZED (
        SELECT scope_type, scope_id, amount, CASE WHEN since >= {_START} THEN spent ELSE 0 END AS spent
        FROM spend_limit WHERE amount IS NOT NULL
    )
    SELECT session.id FROM approval JOIN session ON session.id = approval.session_id
    JOIN thread ON thread.session_id = approval.session_id AND thread.id = approval.thread_id JOIN turn ON turn.id = thread.turn_id
    WHERE approval.status = 'pending' AND {{of_kind}} AND approval.tool = %(tool)s AND session.id > %(after)s
    AND NOT EXISTS (
        SELECT FROM standing WHERE spent + coalesce((turn.quote->>'input_cost')::numeric, 0) >= standing.amount AND {_OF_THREAD}
    ) ORDER BY session.id LIMIT %(most)s
"""  # noqa: S608 - conditions of our own
