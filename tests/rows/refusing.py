"""A database that refuses some writes, as a constraint does that a row can never meet."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg import sql


@contextmanager
def refusing(url: str, table: str, condition: LiteralString = "true", code: str = "23514") -> Iterator[None]:
    """Refuse inserts and updates of a table's rows that meet the condition, with this SQLSTATE. `url` is the administrator's."""
    names = {"table": sql.Identifier(table), "name": sql.Identifier(f"refuse_{table}"), "code": sql.Literal(code)}
    with psycopg.connect(url, autocommit=True) as db:
        function = "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = {code}; END $$"
        trigger = "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {name}()"
        db.execute(sql.SQL(function).format(**names))
        db.execute(sql.SQL(trigger).format(**names, when=sql.SQL(condition)))
        try:
            yield
        finally:
            db.execute(sql.SQL("DROP TRIGGER refuse ON {table}; DROP FUNCTION {name}").format(**names))
