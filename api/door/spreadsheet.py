"""Tables for a spreadsheet, as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence

from flask import Response

from api.door.routes import CSV

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""With these a spreadsheet begins a formula."""


def response(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """Return a file of CSV with a row of headers. A text that a spreadsheet would calculate has an apostrophe before it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return Response(text.getvalue(), mimetype=CSV, headers={"content-disposition": f'attachment; filename="{name}.csv"'})


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value
