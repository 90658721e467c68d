"""Insights as a table for a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Sequence

from api.v1.insights.responses import Insight

_COLUMNS = tuple(name for name in Insight.model_fields if name != "type")
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""With these a spreadsheet begins a formula."""


def table(lines: Iterable[Insight]) -> str:
    """Return lines as CSV with a row of headers. A text that a spreadsheet would calculate has an apostrophe before it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_row(line) for line in lines)
    return text.getvalue()


def _row(line: Insight) -> Sequence[object]:
    return [_cell(getattr(line, name)) for name in _COLUMNS]


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value
