"""Turns of many sessions that begin at once exceed a spend limit by no more than one reply together."""

from functools import partial

from races.races_together import of_kind, together
from rows.spending import QUOTE, begin, limit
from rows.stage import Stage

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
    for session in sessions:
        stage.check(session)
