"""A kind of approval is known everywhere or nowhere: its rules, its verb, its word on the wire, its card, its answers."""

from pathlib import Path
from typing import get_args

from api.cli.asking import CHOICES
from api.v1.approvals.requests import ApprovalKind
from models.flow.decide.kinds import CARRY_OUT
from models.session.approval.kinds import KINDS

TEMPLATES = Path(__file__).parents[2] / "api/desk/card/kinds"


def test_every_kind_has_a_verb_that_carries_its_decisions_out() -> None:
    assert CARRY_OUT.keys() == KINDS.keys()
    assert all(callable(verb) for verb in CARRY_OUT.values())


def test_the_api_names_every_kind() -> None:
    assert set(get_args(ApprovalKind)) == KINDS.keys()


def test_the_inbox_has_a_part_of_the_card_for_every_kind() -> None:
    assert {template.stem for template in TEMPLATES.iterdir()} == KINDS.keys()


def test_the_command_line_has_answers_for_every_kind_that_needs_more_than_yes_or_no() -> None:
    assert {name for name, kind in KINDS.items() if kind.why_no_click} <= CHOICES.keys() <= KINDS.keys()


def test_only_a_kind_that_one_click_decides_takes_another_input() -> None:
    assert [kind.name for kind in KINDS.values() if kind.takes_edits and kind.why_no_click] == []
