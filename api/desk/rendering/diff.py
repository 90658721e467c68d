"""A diff as rows of a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.desk.rendering.fields import pretty, same
from models.pure.pricing.prices import dollars_of
from models.pure.text.line_diff import Hunk, hunks
from models.pure.text.visible import visible_lines


@dataclass(frozen=True)
class DiffRow:
    """One line of a diff."""

    kind: str
    """`add`, `del`, `same`, or `gap` between two hunks."""
    text: str
    old: int | None = None
    """The line's number before the change."""
    new: int | None = None
    """The line's number after the change."""

    @property
    def sign(self) -> str:
        """The sign before the line, so that nobody needs the colours."""
        return {"add": "+", "del": "\N{MINUS SIGN}"}.get(self.kind, "")

    @property
    def spoken(self) -> str:
        """The sign for a screen reader."""
        return {"add": "added", "del": "removed"}.get(self.kind, "")


def rows(hunks: Sequence[Hunk], *, numbered: bool = True) -> Iterator[DiffRow]:
    """Yield the rows of all hunks, with a gap between two hunks. Every character that a screen would hide is an escape.

    `numbered`: True if the hunks are of the whole file, so that their line numbers are known.
    """
    end = 1
    for i, hunk in enumerate(hunks):
        if numbered and (hidden_lines := hunk["old"] - end) > 0:
            yield DiffRow("gap", f"{hidden_lines} unchanged line{'s' if hidden_lines > 1 else ''}")
        elif i:
            yield DiffRow("gap", "…")
        old, new = hunk["old"], hunk["new"]
        for line in hunk["lines"]:
            kind = {"+": "add", "-": "del"}.get(line[0], "same")
            numbers = (old if kind != "add" else None, new if kind != "del" else None) if numbered else (None, None)
            yield DiffRow(kind, visible_lines(line[1:]), *numbers)
            old, new = old + (kind != "add"), new + (kind != "del")
        end = old


@dataclass(frozen=True)
class ChangedField:
    """One argument that a person changed."""

    name: str
    rows: Sequence[DiffRow]


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ChangedField]:
    """Return the arguments in which two inputs differ. Texts are compared by lines, other values as JSON."""
    names = [*after, *(name for name in before if name not in after)]
    names = [name for name in names if name not in before or name not in after or not same(before[name], after[name])]
    return [ChangedField(visible_lines(name), _rows_of(before.get(name, ""), after.get(name, ""))) for name in names]


def changed_amount(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ChangedField]:
    """Return how an amount was changed, in dollars."""
    return changed_fields(*({"Amount": f"${dollars_of(value['amount']):,.2f}"} for value in (before, after)))


def _rows_of(old: Any, new: Any) -> list[DiffRow]:
    texts = [value if isinstance(value, str) else pretty(value) for value in (old, new)]
    if not any(text.endswith("\n") for text in texts):
        texts = [text and f"{text}\n" for text in texts]  # else each last line says that it has no end
    changes, left_out = hunks(*texts)
    more = [DiffRow("gap", f"{left_out} more changed lines")] if left_out else []
    return [*rows(changes, numbered=False), *more]
