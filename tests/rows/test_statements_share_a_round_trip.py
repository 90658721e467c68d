"""Statements are sent in one message, and their results come back in order.

These tests fail if psycopg changes the internals that `exchange` uses.
"""

from datetime import UTC, datetime

import psycopg
import pytest
from own_database import DatabaseUrls
from psycopg.types.json import Jsonb

from models.database.exchange import Connection, Statement

VALUES = {
    "text": "naïve \u202e",
    "number": 2**40,
    "flag": True,
    "nothing": None,
    "moment": datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
    "texts": ["a", "b"],
    "bytes": b"\x00\xff",
    "json": {"a": [1, 2.5, None, "é"]},
}
TYPES = {"nothing": "text", "number": "int8", "moment": "timestamptz", "texts": "text[]", "bytes": "bytea", "json": "jsonb"}


@pytest.fixture
def connection(database_urls: DatabaseUrls) -> Connection:
    return Connection.connect(database_urls.app, autocommit=True)


def echo(name: str) -> Statement:
    """A statement that returns one of the values."""
    value = VALUES[name]
    return Statement(f"SELECT %(value)s::{TYPES.get(name, 'text' if isinstance(value, str) else 'bool')}", {"value": sent(value)})


def sent(value: object) -> object:
    return Jsonb(value) if isinstance(value, dict) else value


@pytest.mark.parametrize("time", ["prepared", "known"])
def test_each_value_comes_back_as_it_was_sent(connection: Connection, time: str) -> None:
    with connection:
        if time == "known":
            connection.exchange([echo(name) for name in VALUES])
        rows = connection.exchange([echo(name) for name in VALUES])
    assert dict(zip(VALUES, (answer[0][0] for answer in rows), strict=True)) == VALUES


def test_the_first_failure_skips_the_statements_behind_it(connection: Connection) -> None:
    with connection:
        ask, fail = Statement("SELECT 'behind'", {}), Statement("SELECT 1 / %(n)s", {"n": 0})
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.exchange([Statement("SELECT 'before'", {}), fail, ask])
        assert connection.exchange([ask, ask]) == [[("behind",)]] * 2


def test_a_doubled_percent_sign_is_one(connection: Connection) -> None:
    with connection:
        assert connection.exchange([Statement("SELECT 'a%%' LIKE %(text)s", {"text": "a_"})]) == [[(True,)]]


def test_a_message_larger_than_any_buffer_is_sent_whole(connection: Connection) -> None:
    with connection:
        texts = [letter * 4_000_000 for letter in "abc"]
        rows = connection.exchange([Statement("SELECT %(text)s::text", {"text": text}) for text in texts])
    assert [answer[0][0] for answer in rows] == texts


def test_an_interrupted_connection_is_closed(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Because nobody knows what was sent."""

    def interrupt(_statement: object) -> list[None]:
        raise KeyboardInterrupt

    monkeypatch.setattr(connection, "_send", interrupt)
    with pytest.raises(KeyboardInterrupt):
        connection.exchange([Statement("SELECT 1", {})])
    assert connection.closed
