"""A release that brings a schema of its own finds every row as the release before left it."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from own_database import make_url
from psycopg import sql
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from deploy.migrate import configuration, migrate
from models.schema import TABLES

NAME = f"upgraded_{os.getpid()}"
BEFORE = "0009"
METADATA = TABLES[0].metadata


@pytest.fixture
def old(servers: dict[str, str]) -> Iterator[str]:
    """The owner's URL of an empty database with the schema of an earlier release."""
    with psycopg.connect(servers["postgres"], autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER assent_owner").format(sql.Identifier(NAME)))
        try:
            url = make_url(servers["owner"], NAME)
            command.upgrade(configuration(url), BEFORE)
            yield url
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(NAME)))


def engine(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)


def a_value(column: sa.ColumnElement[Any], number: int) -> Any:
    """One that no other column of the row has, in every column: what an upgrade mixes up is found."""
    kind = column.type
    if isinstance(kind, JSONB):
        return {"of": column.key, "number": number}
    if isinstance(kind, ARRAY):
        return [f"{column.key} {number}"]
    if isinstance(kind, sa.DateTime):
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    if isinstance(kind, sa.Boolean):
        return bool(number % 2)
    if isinstance(kind, sa.LargeBinary):
        return bytes([number])
    return number if isinstance(kind, sa.Integer | sa.Float) else f"{column.key} {number}"


def a_row(table: sa.Table) -> dict[str, Any]:
    """Of each table one, that refers to the others' ones; without its defaults."""
    found = {column.key: a_value(column, number) for number, column in enumerate(table.columns)}
    referred = {column.key: f"{key.column.table.name}'s" for column in table.columns for key in column.foreign_keys}
    own = {"id": f"{table.name}'s", "workspace_id": "workspace's"}
    return found | {name: value for name, value in own.items() if name in table.columns} | referred


def rows(db: sa.Connection, tables: list[sa.Table]) -> dict[str, list[dict[str, Any]]]:
    return {table.name: [dict(row) for row in db.execute(sa.select(table)).mappings()] for table in tables}


def test_every_column_of_every_row_is_as_it_was(old: str) -> None:
    """With a row in each table, none of whose columns is like another."""
    there = sa.MetaData()
    with engine(old).begin() as db:
        there.reflect(db, only=[table.name for table in METADATA.sorted_tables])
        for table in there.sorted_tables:
            db.execute(sa.insert(table).values(a_row(table)))
        before = rows(db, there.sorted_tables)
    migrate(old)
    with engine(old).connect() as db:
        assert rows(db, there.sorted_tables) == before


def test_the_tables_are_what_the_models_say(old: str) -> None:
    migrate(old)
    with engine(old).connect() as db:
        differ = compare_metadata(MigrationContext.configure(db), METADATA)
    assert not differ, "\n".join(map(str, differ))


def test_each_role_may_do_what_it_did(old: str) -> None:
    """Columns that were written anew have their rights."""
    asked = sa.text("""
        SELECT grantee, table_name, column_name, privilege_type FROM information_schema.column_privileges
        WHERE table_schema = 'public' AND grantee IN ('assent_app', 'assent_system')
    """)
    with engine(old).connect() as db:
        before = {tuple(row) for row in db.execute(asked)}
    migrate(old)
    with engine(old).connect() as db:
        now = {tuple(row) for row in db.execute(asked)}
    assert before - now == set()
