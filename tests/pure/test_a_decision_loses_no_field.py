"""Every field of a decision that a client sends reaches the verb."""

from dataclasses import dataclass, fields
from typing import Any

import pytest

from api.v1.approvals.decisions import DecisionFields
from api.v1.approvals.requests import DecisionBody
from api.v1.events.requests import EventsSend, plain
from models.session.approval.decision import Decision, choice_of

SENT: dict[str, Any] = {
    "deny_message": "No.",
    "interrupt": True,
    "updated_input": {"command": "ls", "env": None},
    "respond": "Done already.",
    "scope": "always",
    "match": "exact",
    "matches": ["bash(git push *)"],
    "expires_in_seconds": 60,
    "max_uses": 3,
    "include_sub_agents": True,
    "expected_input_sha256": "0" * 64,
    "answers": {"who": {"action": "accept", "content": {"name": None}}},
}
OF_UNKNOWN_OUTCOMES = {"outcome", "content"}
OF_GRANTS = {"grant_id"}
OF_LINKS = {"link_id"}
NO_CHOICE = {
    "scope",
    "match",
    "matches",
    "expires_in_seconds",
    "max_uses",
    "include_sub_agents",
    "expected_input_sha256",
    *OF_GRANTS,
    *OF_LINKS,
}
"""Fields in which votes that count together may differ: the grant, and which input was seen. An edited input has its own hash."""


def by_event(**sent: Any) -> Decision:
    """The decision of a `user.tool_confirmation`."""
    event = {"type": "user.tool_confirmation", "tool_use_id": "sevt_1", "result": "allow"} | sent
    [payload] = [plain(event) for event in EventsSend.model_validate({"events": [event]}).events]
    decision: Decision = payload["decision"]
    return decision


def by_approval(**sent: Any) -> Decision:
    """The decision of `POST /v1/approvals/{id}/decision`."""
    return DecisionBody.model_validate({"result": "allow"} | sent).decision()


@pytest.mark.parametrize("decide", [by_event, by_approval])
def test_every_field_that_a_client_sends_is_in_the_decision(decide: Any) -> None:
    assert SENT.keys() == DecisionFields.model_fields.keys() - {"answer"}, "add the new field to SENT"
    decision, empty = decide(**SENT), Decision()
    kept = {field.name for field in fields(Decision) if getattr(decision, field.name) == getattr(empty, field.name)}
    assert kept == OF_UNKNOWN_OUTCOMES | OF_GRANTS | OF_LINKS
    assert decision.updated_input == SENT["updated_input"], "a null inside an input is a value"
    assert decision.respond == ({"type": "text", "text": "Done already."},)


@pytest.mark.parametrize("name", SENT)
def test_both_routes_build_the_same_decision(name: str) -> None:
    assert by_event(**{name: SENT[name]}) == by_approval(**{name: SENT[name]}) != Decision("allow")


def test_answer_is_the_short_form_of_answers_to_one_question() -> None:
    expected = {"": {"action": "accept", "content": {"name": "Ada"}}}
    assert by_event(answer={"name": "Ada"}).answers == by_approval(answer={"name": "Ada"}).answers == expected


def test_a_field_that_the_verb_does_not_know_is_an_error() -> None:
    """So a new field of the requests cannot be forgotten silently."""

    class Longer(DecisionFields):
        reason_code: str | None = None

    with pytest.raises(TypeError, match="reason_code"):
        Longer(reason_code="fraud").decided("allow")


@pytest.mark.parametrize("name", [field.name for field in fields(Decision)])
def test_votes_with_different_effects_do_not_count_together(name: str) -> None:
    values = SENT | {"result": "deny", "respond": ({"type": "text", "text": "Done."},), "outcome": "rerun", "grant_id": "grnt_1"}
    values |= {"content": ({"type": "text", "text": "It ran."},), "link_id": "link_1", "matches": ("bash(git push *)",)}
    differs = choice_of(Decision(**{name: values[name]}).stored) != choice_of(Decision().stored)
    assert differs == (name not in NO_CHOICE | {"updated_input"})


def test_a_field_that_is_added_later_belongs_to_the_choice() -> None:
    @dataclass(frozen=True)
    class Longer(Decision):
        in_whose_name: str | None = None

    assert choice_of(Longer("allow", in_whose_name="root").stored) != choice_of(Longer("allow").stored)
