"""Turns of many sessions that begin at once exceed a spend limit by no more than one reply together."""

from functools import partial
from typing import Any

from races.races_together import of_kind, together
from rows.spending import COSTS_10, QUOTE, begin, limit
from rows.stage import Stage, say

from models.database.transactions import transaction
from models.session.spending import standing as spend_standing
from models.session.turn.row import Turn

REPLY = 10
"""The highest cost of a reply, in dollars. Its input costs $1."""


def test_parallel_claims_reserve_their_highest_cost(stage: Stage) -> None:
    stage.quote = QUOTE
    limit(stage, "30")
    sessions = [begin(stage) for _ in range(12)]
    outcomes = together(*(partial(stage.claim, session) for session in sessions))
    begun = of_kind(outcomes, Turn)
    assert len(begun) + outcomes.count(None) == len(sessions), outcomes
    assert 30 < len(begun) * (1 + REPLY) <= 30 + REPLY, "the limit is used, and exceeded by at most one reply"
    assert standing(stage) == (0, len(begun) * (1 + REPLY))
    ends = [partial(stage.reply, turn.session_id, say("Done."), turn=turn, charge=COSTS_10) for turn in begun]
    more = [begin(stage) for _ in range(4)]
    outcomes = together(*ends, *(partial(stage.claim, session) for session in more))
    late = len(of_kind(outcomes, Turn))
    assert standing(stage) == (len(begun) * REPLY, late * (1 + REPLY)), outcomes
    for session in sessions + more:
        stage.check(session)


def standing(stage: Stage) -> tuple[Any, Any]:
    """What the limit has counted: spent, and reserved."""
    with transaction(stage.workspace_id) as db:
        [of_limit] = spend_standing.of_workspace(db)
    return of_limit.spent, of_limit.reserved
