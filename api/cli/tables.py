"""Tables for terminals: a header, aligned columns that fit the width, and colours. A pipe or a file gets whole, plain texts."""

import json
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import click

from models.pure.state_words import word_of
from models.pure.text.relative_time import ago, span
from models.pure.text.visible import visible

Row = dict[str, Any]

LEAST = 16
"""Characters that a column keeps when it gives way to others."""
SHORT_ID = 8
"""The last characters of an id, by which a table on a terminal names a row. Commands take them in place of the id."""
COLOURS = {"good": "green", "bad": "red", "due": "yellow"}
"""One meaning for each colour, as on the pages. Other words have none."""


@dataclass(frozen=True)
class Column:
    """One column."""

    title: str
    cell: Callable[[Row], Any]
    """Returns the row's text. None is shown as `-`."""
    gives_way: bool = False
    """Whether the column is cut where the table is wider than the terminal."""
    coloured: bool = False
    """Whether the text is a state, which has a colour."""
    to_the_right: bool = False
    """Whether the column is a number."""
    is_spare: bool = False
    """Whether the column is left out where a terminal is too narrow."""

    def text(self, row: Row) -> str:
        """Return the text of a row, in one line. On a terminal a state has its glyph before its word."""
        value = self.cell(row)
        if self.coloured and sys.stdout.isatty() and (state := word_of(str(value))):
            return state.text
        return "-" if value is None or value == "" else visible(str(value))


def short_id(row_id: str) -> str:
    """Return the end of an id on a terminal, the whole id elsewhere."""
    return row_id[-SHORT_ID:] if sys.stdout.isatty() else row_id


def id_column(title: str = "ID", field: str = "id") -> Column:
    """Return the column of the id."""
    return Column(title, lambda row: short_id(row[field]))


def columns_for(rows: Sequence[Row]) -> list[Column]:
    """Return a column for each field of the rows. The first two stay on a narrow terminal."""
    names = list(rows[0]) if rows else []
    return [
        id_column()
        if name == "id"
        else Column(
            name.removesuffix("_at").replace("_", " ").upper(),
            partial(_value, name=name),
            gives_way=not name.endswith(("id", "_at")),
            coloured=name == "status",
            is_spare=at > 1,
        )
        for at, name in enumerate(names)
    ]


def show_table(rows: Sequence[Row], as_json: bool, columns: Sequence[Column]) -> None:
    """Print rows as JSON, or as a table with these columns."""
    if as_json:
        click.echo(json.dumps(rows, default=str, indent=1))
    elif not rows:
        click.echo("None.", err=True)
    else:
        for line in table(rows, columns, width_of_terminal()):
            click.echo(line)


def show_row(row: Row, as_json: bool, columns: Sequence[Column]) -> None:
    """Print one row as JSON, or as a table of one line."""
    if as_json:
        click.echo(json.dumps(row, default=str, indent=1))
    else:
        show_table([row], as_json, columns)


def width_of_terminal() -> int | None:
    """Return the columns of the terminal, or None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(rows: Sequence[Row], columns: Sequence[Column], width: int | None) -> Iterator[str]:
    """Yield the header and a line for each row, none wider than `width` as far as columns give way."""
    columns, widths = _fit(columns, [_widest(column, rows) for column in columns], width)
    titles, texts = [column.title for column in columns], [[column.text(row) for column in columns] for row in rows]
    yield click.style(_line(titles, columns, widths), dim=True)
    for cells in texts:
        yield _line(cells, columns, widths, colours=True)


def columns_of(text: str) -> int:
    """Return the width of a text on a terminal, where letters of East Asia take two columns and combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """Return the text, or its beginning with an ellipsis, in at most `width` columns."""
    if columns_of(text) <= width:
        return text
    beginning = ""
    for character in text:
        if columns_of(beginning + character) >= width:
            break
        beginning += character
    return f"{beginning.rstrip()}…"


def painted(text: str, state: str = "") -> str:
    """Return a text in the colour of a state; by default, of the text itself."""
    state_word = word_of(state or text)
    colour = COLOURS.get(state_word.tone) if state_word else None
    return click.style(text, fg=colour) if colour else text


def _widest(column: Column, rows: Sequence[Row]) -> int:
    return max(columns_of(text) for text in (column.title, *map(column.text, rows)))


def _fit(columns: Sequence[Column], widths: list[int], width: int | None) -> tuple[list[Column], list[int]]:
    """Return the columns that fit, with their widths. Spare columns go first, and then the widest that gives way shrinks."""
    fitting, sizes = list(columns), list(widths)
    if width is None:
        return fitting, sizes
    while _sum(min(size, LEAST) if one.gives_way else size for one, size in zip(fitting, sizes, strict=True)) > width:
        spare = [at for at, column in enumerate(fitting) if column.is_spare]
        if not spare:
            break
        del fitting[spare[-1]], sizes[spare[-1]]
    while _sum(sizes) > width:
        widest = max(range(len(sizes)), key=lambda at: sizes[at] if fitting[at].gives_way else 0)
        if not fitting[widest].gives_way or sizes[widest] <= LEAST:
            break
        sizes[widest] -= 1
    return fitting, sizes


def _sum(sizes: Iterable[int]) -> int:
    """Return the width of a line of cells of these sizes."""
    return sum(size + 2 for size in sizes) - 2


def _value(row: Row, name: str) -> str | None:
    """Return a field as text: a list with commas, a moment relative to now."""
    value = row[name]
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if value is None or not name.endswith("_at"):
        return None if value is None else str(value)
    moment, now = datetime.fromisoformat(str(value)), datetime.now(UTC)
    return f"in {span((moment - now).total_seconds())}" if moment > now else ago(moment, now)


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], *, colours: bool = False) -> str:
    """Return the cells as a line. Colours take no width, so they come after the padding is known."""
    parts = []
    for text, column, width in zip(cells, columns, widths, strict=True):
        fitting = cut(text, width)
        padding = " " * (width - columns_of(fitting))
        cell = painted(fitting, text) if colours and column.coloured else fitting
        parts.append(padding + cell if column.to_the_right else cell + padding)
    return "  ".join(parts).rstrip()
