"""How spend limits stand: the cost of their present periods, and the most that requests under way may add.

Both are running sums (`SpendSum`), so a claim takes the same time however much was spent. A claim reserves the most that its
request may cost. The transaction that ends the attempt removes this and adds the cost (`models.session.spending.sums`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from models.database import clock
from models.database.daily_usage import DAYS
from models.database.exchange import Statement
from models.database.query import Query, select
from models.database.rows import Db
from models.pure.pricing.charges import Charge
from models.session.locked import Locked
from models.session.spending.sums import RESERVED, applies
from models.workspace import spend_sum
from models.workspace.spend_limit import NO_NEW_LIMIT, SpendLimit, starts
from models.workspace.spend_sum import SpendSum


@dataclass(frozen=True)
class Standing:
    """A limit and the sums of its present period, in US dollars."""

    limit: SpendLimit
    sums: SpendSum
    spent: Decimal

    @classmethod
    def at(cls, now: datetime, limit: SpendLimit, sums: SpendSum) -> "Standing":
        """Return how a limit stands in the period in which `now` is."""
        return cls(limit, sums, sums.spent_from(limit.start(now)))

    @property
    def reserved(self) -> Decimal:
        """The most that requests under way may cost."""
        return self.sums.reserved

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
    ids = [limit.id for limit in limits]
    by_index = Statement(f"SELECT {spend_sum.BY_INDEX}", {})
    rows, _, sums = locked.db.read(select(SpendLimit, _LOCKED, ids=ids), by_index, spend_sum.of_limits(ids))
    return _standings(locked.now, rows, sums)


def reserve(locked: Locked, standings: Sequence[Standing], charge: Charge) -> None:
    """Count a request that begins, whose quote is `charge`, at these limits, which are locked."""
    if standings and charge.cost:
        spend_sum.reserve(locked.db, [standing.sums for standing in standings], charge.cost)


def start(db: Db, limit: SpendLimit) -> None:
    """Insert the sums of a new limit, from which the workspace's transactions are kept out (`SpendLimit.put`)."""
    since = limit.start(clock.now(db))
    [dollars] = db.rows(_SUMS, type=limit.scope_type, scope=limit.scope_id, since=since)
    row = {"limit_id": limit.id, "workspace_id": limit.workspace_id, "number": 1, "since": since}
    db.insert(SpendSum(**row, spent=dollars[0], reserved=dollars[1]))


def of_workspace(db: Db) -> list[Standing]:
    """Return the standings of all limits of the workspace."""
    limits = db.find(SpendLimit, "ORDER BY scope_type DESC, scope_id, period")
    [sums] = db.read(spend_sum.of_limits([limit.id for limit in limits]))
    ids = {row.limit_id for row in sums}  # somebody else may just have deleted one
    return _standings(clock.now(db), [limit for limit in limits if limit.id in ids], sums)


def _standings(now: datetime, limits: Sequence[SpendLimit], sums: Sequence[SpendSum]) -> list[Standing]:
    sums_of = {row.limit_id: row for row in sums}
    return [Standing.at(now, limit, sums_of[limit.id]) for limit in limits]


def with_room(db: Db, of_kind: str, tool: str, after: str, most: int) -> list[str]:
    """Return sessions with a pending approval of `tool` whose limits have room again for the input of the next request.

    `of_kind`: an SQL condition, the kind of these approvals, so that an index finds them.

    At most `most`, in the order of their ids, those behind the id `after`.
    """
    values = {"tool": tool, "after": after, "most": most, **starts(clock.now(db))}
    return [session_id for (session_id,) in db.rows(_WITH_ROOM.format(of_kind=of_kind), **values)]


_LOCKED = "WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE"
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
        SELECT coalesce(sum(cost), 0) FROM {DAYS}
        WHERE workspace_id = current_setting('assent.workspace') AND day >= %(since)s AND {applies("agent_id", "person_id")}
    ), {RESERVED} FROM (SELECT %(type)s::text AS scope_type, %(scope)s::text AS scope_id) spend_limit
"""  # noqa: S608 - conditions of our own
_WITH_ROOM = f"""
    WITH standing AS MATERIALIZED (
        SELECT scope_type, scope_id, amount, CASE WHEN newest.since >= {_START} THEN newest.spent ELSE 0 END AS spent
        FROM spend_limit {spend_sum.newest("since, spent")} WHERE amount IS NOT NULL
    )
    SELECT session.id FROM approval JOIN session ON session.id = approval.session_id
    JOIN thread ON thread.session_id = approval.session_id AND thread.id = approval.thread_id JOIN turn ON turn.id = thread.turn_id
    WHERE approval.status = 'pending' AND {{of_kind}} AND approval.tool = %(tool)s AND session.id > %(after)s
    AND NOT EXISTS (
        SELECT FROM standing WHERE spent + coalesce((turn.quote->>'input_cost')::numeric, 0) >= standing.amount AND {_OF_THREAD}
    ) ORDER BY session.id LIMIT %(most)s
"""  # noqa: S608 - conditions of our own
