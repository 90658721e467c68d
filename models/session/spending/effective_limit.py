"""Effective limits: the lowest limit that holds for a person in a period, the person's own or the workspace's."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from models.database import clock
from models.database.daily_usage import DAYS
from models.database.rows import Db
from models.workspace.spend_limit import PERIODS, SpendLimit, starts


@dataclass(frozen=True)
class EffectiveLimit:
    """The limit that holds for a person in the limit's period."""

    person_id: str
    limit: SpendLimit
    spent: Decimal
    """The person's spend in the present period, in US dollars."""


def of_people(db: Db, person_ids: Sequence[str], periods: Sequence[str]) -> list[EffectiveLimit]:
    """Return the limits of these people in these periods, by person and period. A period without a limit is left out."""
    limits = db.find(SpendLimit, _APPLY, people=list(person_ids), periods=list(periods))
    sums = db.rows(_SPENT, people=list(person_ids), **starts(clock.now(db)))
    sums_of = {person_id: dict(zip(PERIODS, amounts, strict=True)) for person_id, *amounts in sums}
    effective = []
    for person_id in person_ids:
        for period in PERIODS:
            holding = [limit for limit in limits if limit.period == period and limit.scope_id in (person_id, db.workspace_id)]
            if holding:
                lowest = min(holding, key=_height)
                effective.append(EffectiveLimit(person_id, lowest, sums_of.get(person_id, {}).get(period, Decimal(0))))
    return effective


def _height(limit: SpendLimit) -> tuple[bool, Decimal, bool]:
    """Return the key that sorts limits: the lowest amount first, no amount last. Of equal limits the person's own comes first."""
    return limit.amount is None, limit.amount or Decimal(0), limit.scope_type == "workspace"


HAS_ONE = """EXISTS (
    SELECT FROM spend_limit WHERE spend_limit.workspace_id = member.workspace_id AND period = ANY(%(periods)s)
    AND (scope_type = 'workspace' OR (scope_type = 'user' AND scope_id = person_id))
)"""
"""A condition on `member`: a limit holds for the person in one of the periods."""
_APPLY = """
    WHERE period = ANY(%(periods)s) AND (scope_type = 'workspace' OR (scope_type = 'user' AND scope_id = ANY(%(people)s)))
"""
_SPENT = f"""
    SELECT person_id, coalesce(sum(cost) FILTER (WHERE day >= %(daily)s), 0),
        coalesce(sum(cost) FILTER (WHERE day >= %(weekly)s), 0),
        coalesce(sum(cost) FILTER (WHERE day >= %(monthly)s), 0)
    FROM {DAYS}
    WHERE workspace_id = current_setting('assent.workspace') AND person_id = ANY(%(people)s)
        AND day >= least(%(weekly)s::date, %(monthly)s::date)
    GROUP BY person_id
"""  # noqa: S608 - names of our own
"""The sums are in the order of PERIODS."""
