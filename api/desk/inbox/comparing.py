"""Calls of one tool beside each other: equal arguments once, a column for each argument that differs, and the sums of amounts."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from models.pure.json.canonical import canonical
from models.session.approval import sentences
from models.session.approval.face import BETWEEN, leaves, value_text, why_not_in_table
from models.session.approval.row import Approval

FEWEST = 5
"""So many waiting calls of one tool are worth a table."""
_AMOUNT = re.compile(r"(?:^|_)(amount|cents|cost|fee|payout|price|quantity|qty|refund|sum|total|value)s?(?:_|$)")
_UNIT = re.compile(r"(?:^|_)(currency|unit|units)(?:_|$)")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ABSENT = "absent"


@dataclass(frozen=True)
class Cell:
    """One argument of one call."""

    text: str
    is_given: bool = True
    """False if the call has no such argument."""
    is_number: bool = False


@dataclass(frozen=True)
class Line:
    """One call that the table decides."""

    approval: Approval
    cells: tuple[Cell, ...]
    amounts: tuple[str, ...]
    """The call's part of each sum, as a decimal number."""


@dataclass(frozen=True)
class Apart:
    """A call that only its card decides."""

    approval: Approval
    why: str


@dataclass(frozen=True)
class Column:
    """An argument that differs."""

    name: str
    is_number: bool
    """True if each call has a number."""


@dataclass(frozen=True)
class Sum:
    """The sum of an argument that is an amount."""

    name: str
    total: str
    is_each: bool
    """True if every call has the same amount, so that it has no column."""


@dataclass(frozen=True)
class Comparison:
    """Calls of one tool."""

    equal: tuple[tuple[str, str], ...]
    """Name and text of each argument that all calls have in common."""
    columns: tuple[Column, ...]
    sums: tuple[Sum, ...]
    lines: tuple[Line, ...]
    apart: tuple[Apart, ...]
    silence: str
    """What the deadline does with each of the lines, as a sentence."""

    @classmethod
    def of(cls, approvals: Sequence[Approval]) -> "Comparison":
        """Return the comparison. A call whose deadline does something else than that of most others stands apart."""
        usual = Counter(row.deadline_effect for row in approvals).most_common(1)[0][0] if approvals else "deny"
        reasons = {row.id: why_apart(row, usual) for row in approvals}
        rows = [row for row in approvals if not reasons[row.id]]
        values = {row.id: dict(leaves(row.masked.arguments)) for row in rows}
        names = list(dict.fromkeys(name for each in values.values() for name in each))
        kinds = {name: {_key(each, name) for each in values.values()} for name in names}
        columns = tuple(Column(name, _is_number(name, values.values())) for name in names if len(kinds[name]) > 1)
        amounts = _amounts(names, values.values(), kinds)
        return cls(
            equal=tuple((name, value_text(values[rows[0].id][name])) for name in names if len(kinds[name]) == 1),
            columns=columns,
            sums=tuple(_sum(name, values.values(), is_each=len(kinds[name]) == 1) for name in amounts),
            lines=tuple(_line(row, values[row.id], columns, amounts) for row in rows),
            apart=tuple(Apart(row, reasons[row.id]) for row in approvals if reasons[row.id]),
            silence=sentences.afterwards(rows[0]) if rows else "",
        )


def why_apart(approval: Approval, usual: str) -> str:
    """Return why only the call's card decides it; empty if the table does. `usual`: the effect of the table's deadlines."""
    return why_not_in_table(approval) or ("" if approval.deadline_effect == usual else "has a deadline with another effect")


Values = dict[str, Any]


def _key(values: Values, name: str) -> bytes:
    """Return what tells two values of an argument apart; texts and numbers differ, and so does a missing argument."""
    return canonical([values[name]]) if name in values else _ABSENT.encode()


def _is_number(name: str, calls: Any) -> bool:
    return all(isinstance(each.get(name), int | float) and not isinstance(each.get(name), bool) for each in calls)


def _amounts(names: Sequence[str], calls: Any, kinds: dict[str, set[bytes]]) -> list[str]:
    """Return the names of the amounts: numbers whose name says so. Amounts in several currencies or units have no sum."""
    if any(_UNIT.search(_words(name)) and len(kinds[name]) > 1 for name in names):
        return []
    return [name for name in names if _AMOUNT.search(_words(name)) and _is_number(name, calls)]


def _words(name: str) -> str:
    """Return the last name of a path in lower case with underscores: `refund_amount` for `order › refundAmount`."""
    return re.sub(r"\W+", "_", _CAPITAL.sub("_", name.rpartition(BETWEEN)[2])).lower()


def _sum(name: str, calls: Any, *, is_each: bool) -> Sum:
    return Sum(name, number_text(sum((_decimal(each[name]) for each in calls), Decimal())), is_each)


def _decimal(value: float) -> Decimal:
    return Decimal(value_text(value))


def number_text(number: Decimal) -> str:
    """Return a number with commas between thousands: `10,842.5`."""
    return f"{number.normalize():,f}"


def _line(row: Approval, values: Values, columns: Sequence[Column], amounts: Sequence[str]) -> Line:
    cells = tuple(
        Cell(value_text(values[column.name]), is_number=column.is_number) if column.name in values else Cell("none", is_given=False)
        for column in columns
    )
    return Line(row, cells, tuple(f"{_decimal(values[name]):f}" for name in amounts))
