"""A request for a summary begins only within the budget and the spend limits, and its cost counts towards them."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from rows.folding import claim, fold, folds, offer, talk
from rows.spending import limit
from rows.stage import Stage, say

from models.pure.pricing.charges import Charge
from models.pure.pricing.prices import Price
from models.pure.pricing.usage import Usage

PRICES = {"input": "1000", "output": "1000", "cache_read": "1000", "cache_write_5m": "1000"}
"""A dollar for 1,000 tokens."""
COSTS_2 = Charge("anthropic", "stand-in", Price.configured(PRICES), Usage(output_tokens=2_000))
FREE = replace(COSTS_2, usage=Usage())
REACHED = {"type": "budget_reached"}
CAPS = pytest.mark.parametrize("cap", ["budget", "spend limit"])


@pytest.fixture(autouse=True)
def registry(setting: Callable[[str, str], None], tmp_path: Path) -> None:
    """Models have a window of 4,000 tokens, and their replies at most 1,000."""
    entry = {"name": "anthropic", "kind": "anthropic", "models": ["*"], "prices": {"*": PRICES}, "windows": {"*": 4_000}}
    file = tmp_path / "providers.json"
    file.write_text(json.dumps({"providers": [entry]}))
    setting("providers", str(file))
    setting("max_tokens", "1000")


def long_session(stage: Stage, cap: str, dollars: str) -> str:
    """A session with a cap, whose next request of about 3,600 tokens must be preceded by a summary."""
    session_id = stage.session()
    talk(stage, session_id, *range(1, 8), charge=FREE)
    stage.message(session_id)
    if cap == "budget":
        stage.locked(session_id, lambda locked: setattr(locked.session, "max_list_cost", Decimal(dollars)))
    else:
        limit(stage, dollars)
    return session_id


@CAPS
def test_a_session_at_its_cap_stops_before_the_summary(stage: Stage, cap: str) -> None:
    session_id = long_session(stage, cap, "3")
    turn, request = claim(stage, session_id)
    assert request.folding, "the request is one for a summary"
    assert turn is None
    row = stage.read(session_id)
    assert (row.status, row.stop_reason, [each.kind for each in stage.approvals(session_id)]) == ("waiting", REACHED, ["budget"])
    assert folds(stage, session_id) == []
    stage.check(session_id)


@CAPS
def test_the_cost_of_a_summary_can_reach_the_cap_and_the_summary_is_kept(stage: Stage, cap: str) -> None:
    """The reply would exceed the cap, so people are asked first. The reply then uses the same summary."""
    session_id = long_session(stage, cap, "4.5")
    turn, request = offer(stage, session_id)
    assert request.folding
    fold(stage, turn, request.folding, replace(COSTS_2, usage=Usage(output_tokens=4_400)))
    assert claim(stage, session_id)[0] is None
    assert (stage.read(session_id).list_cost, stage.read(session_id).stop_reason) == (Decimal("4.4"), REACHED)
    [approval] = stage.approvals(session_id)
    stage.decide(approval, result="allow")
    turn, request = offer(stage, session_id)
    assert request.folding is None
    assert len(folds(stage, session_id)) == 1
    stage.reply(session_id, say("Done."), turn=turn, charge=COSTS_2)
    stage.check(session_id)


def test_a_summary_under_way_is_reserved_at_the_limit(stage: Stage) -> None:
    """Another session's request waits for it, because both together may pass the limit."""
    session_id = long_session(stage, "spend limit", "5")
    turn, request = offer(stage, session_id)
    assert request.folding
    another = stage.session()
    stage.message(another, "m" * 3_600)
    assert claim(stage, another)[0] is None
    assert stage.read(another).status == "running", "it waits, and is not stopped"
    fold(stage, turn, request.folding, COSTS_2)
    stage.locked(
        another,
        lambda locked: locked.db.write("UPDATE turn SET due_at = assent_now() WHERE id = %(id)s", id=locked.thread.turn_id),
    )
    turn, _ = claim(stage, another)
    assert turn, "$2 were spent, and the input costs $1"
