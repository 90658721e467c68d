"""Levels of approval settings combine to the narrower: no level adds an answer or a match that another level leaves out."""

from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.pure.offer import EVERYTHING, LEVELS, OPTIONS, SCOPES, Offer
from models.pure.quorum import Quorum, combined

LEVEL = st.fixed_dictionaries(
    {},
    optional={
        "options": st.none() | st.lists(st.sampled_from(OPTIONS), min_size=1, unique=True),
        "default_scope": st.none() | st.sampled_from(SCOPES),
        "widest_match": st.none() | st.sampled_from(["tool", "exact"]),
        "approvers": st.none() | st.just(["group:grp_1"]),
        "required_approvals": st.none() | st.integers(1, 3),
        "four_eyes": st.none() | st.booleans(),
    },
)
LEVELS_OF_SETTINGS = st.lists(LEVEL, min_size=1, max_size=len(LEVELS))


def answers(offer: Offer) -> set[tuple[str, bool]]:
    """Every answer that the offer has; for a grant also whether it may be more than exact."""
    grants = {(scope, exact) for scope in SCOPES for exact in (True, False) if offer.gives(scope, exact=exact)}
    return grants | {(option, True) for option in offer.options if option not in SCOPES}


@given(LEVELS_OF_SETTINGS)
def test_an_offer_is_what_every_level_offers(levels: list[dict[str, Any]]) -> None:
    offer = combined(levels)[0].offer
    each = [combined([level])[0].offer for level in levels]
    assert answers(offer) == set.intersection(*map(answers, each))
    wishes = [level["default_scope"] for level in levels if level.get("default_scope")]
    assert offer.default_scope == min(wishes, key=SCOPES.index, default=None)
    assert offer.scope is None or offer.has(offer.scope), "what a form suggests is offered"


@given(LEVELS_OF_SETTINGS, LEVEL)
def test_one_more_level_never_adds_an_answer(levels: list[dict[str, Any]], more: dict[str, Any]) -> None:
    before, after = (combined(these)[0].offer for these in (levels, [*levels, more][: len(LEVELS)]))
    assert answers(after) <= answers(before)


@given(LEVELS_OF_SETTINGS, st.lists(LEVEL, min_size=1, max_size=3))
def test_the_settings_of_a_parent_only_narrow_and_are_named(levels: list[dict[str, Any]], parents: list[dict[str, Any]]) -> None:
    """Approvers, numbers and four eyes add up, and what the parent alone leaves out is refused by the parent's name."""
    workspace, *own = levels
    alone, both = combined(levels)[0], combined([workspace, *parents, *own], len(parents))[0]
    assert answers(both.offer) <= answers(alone.offer)
    assert set(both.approvers) >= set(alone.approvers)
    assert both.required_people >= alone.required_people
    assert both.four_eyes >= alone.four_eyes
    added = both.offer.left_out.keys() - alone.offer.left_out.keys()
    assert {both.offer.left_out[option] for option in added} <= {"the approval settings of the parent's agent"}


@given(st.lists(LEVEL, min_size=3, max_size=3))
def test_the_order_in_which_quorums_meet_changes_no_answer(levels: list[dict[str, Any]]) -> None:
    quorums = [combined([level])[0] for level in levels]
    results = [first.and_also(second).and_also(third).offer for first, second, third in permutations(quorums)]
    assert len({(frozenset(answers(offer)), offer.scope) for offer in results}) == 1
    assert quorums[0].and_also(quorums[0]) == quorums[0]


@given(LEVELS_OF_SETTINGS)
def test_a_stored_quorum_is_read_back_with_its_offer(levels: list[dict[str, Any]]) -> None:
    quorum = combined(levels)[0]
    assert Quorum.of(quorum.as_json) == quorum


@given(LEVELS_OF_SETTINGS)
def test_an_answer_is_refused_with_the_level_that_leaves_it_out(levels: list[dict[str, Any]]) -> None:
    offer = combined(levels)[0].offer
    assert {option for option in OPTIONS if offer.why_not("refund", option)} == set(OPTIONS) - set(offer.options)
    assert offer.left_out.keys() == set(OPTIONS) - set(offer.options)
    refused = {(scope, exact) for scope in SCOPES for exact in (True, False) if offer.why_no_grant("refund", scope, exact=exact)}
    assert refused == {(scope, exact) for scope in SCOPES for exact in (True, False) if not offer.gives(scope, exact=exact)}


def test_a_refusal_names_the_settings_and_the_answers_that_are_left() -> None:
    offer = combined([{}, {"options": ["once", "session", "edit"]}])[0].offer
    assert offer.why_not("refund", "always") == (
        "refund does not offer to allow always: the approval settings of the agent leave it out. "
        "Offered: allow once, allow for the session, edit the input, deny."
    )
    assert combined([{}])[0].offer == EVERYTHING
