"""The tables of states are complete: statuses have sentences, transitions lead to statuses, and every call can settle."""

import pytest

from models.pure import states


@pytest.mark.parametrize("table", states.STATUSES)
def test_every_status_has_a_sentence_and_its_transitions(table: str) -> None:
    assert set(states.STATUSES[table]) == set(states.TRANSITIONS[table])
    assert all(sentence.endswith(".") for sentence in states.STATUSES[table].values())


@pytest.mark.parametrize("table", states.TRANSITIONS)
def test_every_transition_leads_to_another_known_status(table: str) -> None:
    for status, after in states.TRANSITIONS[table].items():
        assert after <= set(states.STATUSES[table])
        assert status not in after


def test_a_call_can_be_settled_from_every_status() -> None:
    reached = set(states.SETTLED)
    while True:
        more = {s for s, after in states.TRANSITIONS["tool_call"].items() if after & reached}
        if more <= reached:
            break
        reached |= more
    assert reached == set(states.TOOL_CALL)


def test_a_settled_call_never_changes() -> None:
    final = {"done", "answered", "replaced", "denied", "expired", "cancelled", "refused"}
    assert not any(states.TRANSITIONS["tool_call"][status] for status in final)


def test_a_transition_outside_the_table_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no transition from denied to queued"):
        states.check("tool_call", "denied", "queued")
