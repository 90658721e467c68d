"""The tables of states are whole: every status has its sentence, every transition leads to a status, every call can settle."""

import pytest

from models.pure import states


@pytest.mark.parametrize("table", states.STATUSES)
def test_every_status_has_a_sentence_and_a_line_in_the_table(table: str) -> None:
    """No status without words, none without its followers."""
    assert set(states.STATUSES[table]) == set(states.TRANSITIONS[table])
    assert all(sentence.endswith(".") for sentence in states.STATUSES[table].values())


@pytest.mark.parametrize("table", states.TRANSITIONS)
def test_every_transition_leads_to_a_known_status(table: str) -> None:
    """And nothing goes to itself."""
    for status, after in states.TRANSITIONS[table].items():
        assert after <= set(states.STATUSES[table])
        assert status not in after


def test_every_call_can_be_settled_from_wherever_it_is() -> None:
    """No status is a trap."""
    reached = set(states.SETTLED)
    while True:
        more = {s for s, after in states.TRANSITIONS["tool_call"].items() if after & reached}
        if more <= reached:
            break
        reached |= more
    assert reached == set(states.TOOL_CALL)


def test_nothing_settled_ever_runs() -> None:
    """What was denied, answered, replaced, refused, expired, cancelled or done stays what it is."""
    never_again = {"done", "answered", "replaced", "denied", "expired", "cancelled", "refused"}
    assert frozenset(never_again) == states.SETTLED


def test_an_unknown_transition_is_a_mistake_of_ours() -> None:
    """ValueError, with the words for it."""
    with pytest.raises(ValueError, match="no transition from denied to queued"):
        states.check("tool_call", "denied", "queued")
