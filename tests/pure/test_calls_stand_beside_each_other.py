"""Calls of one tool are compared: equal arguments stand once, others in columns, amounts are summed; an odd call stands apart."""

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from api.desk.inbox.comparing import Comparison
from models.pure.masking import MARKER
from models.session.approval.row import Approval

NOW = datetime(2026, 1, 1, tzinfo=UTC)
numbers = itertools.count()


def approval(arguments: dict[str, Any], **columns: Any) -> Approval:
    """An approval of a call of `refund`."""
    of_call = {"kind": "tool_call", "status": "pending", "tool": "refund", "prompt": "Run refund", "on_timeout": "deny"}
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Approval(id=f"appr_{next(numbers)}", tool_call_id="sevt_1", input=text, **{**of_call, **columns})


def compared(*calls: dict[str, Any]) -> Comparison:
    return Comparison.of([approval(arguments) for arguments in calls])


def test_equal_arguments_stand_once_and_others_have_a_column() -> None:
    table = compared(
        {"order": 1, "why": "late", "to": {"bank": "A", "iban": "x"}}, {"order": 2, "why": "late", "to": {"bank": "A"}}
    )
    assert table.equal == (("to › bank", "A"), ("why", "late"))
    assert [column.name for column in table.columns] == ["order", "to › iban"]
    assert [[cell.text for cell in line.cells] for line in table.lines] == [["1", "x"], ["2", "none"]]
    assert [line.cells[1].is_given for line in table.lines] == [True, False]


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (1, True), (None, "null"), ("a\u202eb", "a<U+202E>b"), ([], {}), (1, 1.5)])
def test_values_of_other_kinds_are_not_equal(one: Any, other: Any) -> None:
    assert [column.name for column in compared({"x": one}, {"x": other}).columns] == ["x"]


def test_amounts_are_summed_exactly_also_when_they_are_equal() -> None:
    table = compared({"amount_cents": 1_000, "fee": 0.1, "order_id": 7}, {"amount_cents": 9_842, "fee": 0.1, "order_id": 8})
    assert [(each.name, each.total, each.is_each) for each in table.sums] == [
        ("amount_cents", "10,842", False),
        ("fee", "0.2", True),
    ]
    assert [line.amounts for line in table.lines] == [("1000", "0.1"), ("9842", "0.1")]


@pytest.mark.parametrize(
    "calls",
    [
        [{"amount": 5, "currency": "EUR"}, {"amount": 5, "currency": "USD"}],
        [{"amount": 5}, {"amount": "5"}],
        [{"amount": 5}, {}],
        [{"orderNumber": 5}, {"orderNumber": 6}],
        [{"amount": True}, {"amount": False}],
    ],
)
def test_what_cannot_be_added_has_no_sum(calls: list[dict[str, Any]]) -> None:
    assert compared(*calls).sums == ()


APART: dict[str, dict[str, Any]] = {
    "is too long for a table": {"input": json.dumps({"text": "x" * 201})},
    "has masked secrets": {"shown_input": {"key": MARKER}},
    "follows links": {"leads_to": {"/path": "/etc"}},
    "has been edited": {"decided_sha256": "0" * 64},
    "may have run before a restore": {"backup_at": NOW},
    "needs several people": {"quorum": {"approvers": [], "required": 2, "four_eyes": False}},
    "needs four eyes": {"quorum": {"approvers": [], "required": 1, "four_eyes": True}},
    "has a deadline with another effect": {"on_timeout": "end_run"},
}


@pytest.mark.parametrize("why", APART)
def test_a_call_that_the_table_does_not_show_whole_stands_apart(why: str) -> None:
    odd = approval({"n": 3})
    for name, value in APART[why].items():
        setattr(odd, name, value)
    table = Comparison.of([approval({"n": 1}), approval({"n": 2}), odd])
    assert [(each.approval.id, each.why) for each in table.apart] == [(odd.id, why)]
    assert len(table.lines) == 2


@pytest.mark.parametrize(
    "arguments", [{f"a{n}": n for n in range(17)}, {"x": "a\n" * 6 + "b"}, {"n" * 201: 1}, {"a\u202e": 1, "a<U+202E>": 2}]
)
def test_each_argument_has_room_and_a_name_of_its_own(arguments: dict[str, Any]) -> None:
    assert [each.why for each in compared({"n": 1}, arguments).apart] == ["is too long for a table"]


def test_a_name_cannot_look_like_a_path() -> None:
    assert [column.name for column in compared({"to › iban": 1}, {"to › iban": 2}).columns] == ["to <U+203A> iban"]
