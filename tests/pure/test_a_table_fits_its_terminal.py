"""A table of the command line has a header, fits the width, and is whole and plain where nobody looks at it."""

import click
import pytest

from api.cli.tables import LEAST, Column, columns_of, table

COLUMNS = [
    Column("ID", lambda row: row["id"]),
    Column("STATE", lambda row: row["state"], coloured=True),
    Column("TITLE", lambda row: row["title"], gives_way=True),
    Column("AGENT", lambda row: row["agent"], gives_way=True),
    Column("COST", lambda row: row["cost"], to_the_right=True),
]
ROWS = [
    {"id": "7TT3S9KD", "state": "failed", "title": "Deploy billing " * 9, "agent": "Release captain " * 3, "cost": "$12.00"},
    {"id": "8VWX29AB", "state": "done", "title": None, "agent": "漢字" * 20, "cost": "$0.01"},
    {"id": "9AAAAAAA", "state": "new", "title": "a\nb\x1b[2J", "agent": "Janitor", "cost": "-"},
]


def lines(width: int | None) -> list[str]:
    return [click.unstyle(line) for line in table(ROWS, COLUMNS, width)]


@pytest.mark.parametrize("width", [70, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    header, *others = lines(width)
    assert header.split() == ["ID", "STATE", "TITLE", "AGENT", "COST"]
    assert all(columns_of(line) <= width for line in others)
    assert "…" in others[0]


def test_where_no_terminal_is_each_text_is_whole() -> None:
    assert ROWS[0]["title"].strip() in lines(None)[1]
    assert "…" not in "".join(lines(None))


def test_columns_that_do_not_give_way_stay_whole_however_narrow_the_terminal_is() -> None:
    _, first, *_ = lines(20)
    assert first.startswith("7TT3S9KD  failed  ")
    assert first.endswith("$12.00")
    assert columns_of(first) == len("7TT3S9KD  failed  ") + 2 * (LEAST + 2) + len("$12.00")


def test_numbers_stand_to_the_right_and_an_absent_value_is_a_dash() -> None:
    _, first, second, third = lines(None)
    assert {columns_of(line) for line in (first, second, third)} == {columns_of(first)}
    assert second.split()[2] == "-"


def test_characters_that_a_terminal_would_obey_are_spelled_out() -> None:
    assert "a<U+000A>b<U+001B>[2J" in lines(None)[3]


def test_a_state_has_a_colour_and_other_words_have_none() -> None:
    _, failed, done, new = table(ROWS, COLUMNS, 140)
    assert click.style("failed", fg="red") in failed
    assert click.style("done", fg="green") in done
    assert "\x1b" not in new
