"""Migrations give the schema that the models describe, and running them again changes nothing."""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from own_database import make_url
from psycopg import sql
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from deploy.migrate import migrate
from models.schema import TABLES

NAME = f"upgraded_{os.getpid()}"
METADATA = TABLES[0].metadata


@pytest.fixture
def migrated(servers: dict[str, str]) -> Iterator[str]:
    """The owner's URL of a database with this release's schema."""
    with psycopg.connect(servers["postgres"], autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER assent_owner").format(sql.Identifier(NAME)))
        try:
            url = make_url(servers["owner"], NAME)
            migrate(url)
            yield url
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(NAME)))


def engine(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)


def a_value(column: sa.ColumnElement[Any], number: int) -> Any:
    """A value for the column that no other column of the row has, so that an upgrade that mixes up columns fails."""
    kind = column.type
    values: list[tuple[Any, Any]] = [
        (JSONB, {"of": column.key, "number": number}),
        (ARRAY, [number if isinstance(getattr(kind, "item_type", None), sa.Integer) else f"{column.key} {number}"]),
        (sa.DateTime, datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)),
        (sa.Date, date(2026, 1, 1) + timedelta(days=number)),
        (sa.Boolean, bool(number % 2)),
        (sa.LargeBinary, bytes([number])),
        (sa.Integer | sa.Float, number),
        (sa.Numeric, Decimal(number) / 8),
    ]
    return next((value for kinds, value in values if isinstance(kind, kinds)), f"{column.key} {number}")


def a_row(table: sa.Table) -> dict[str, Any]:
    """A row without defaults. Its foreign keys name the rows of the other tables."""
    values = {column.key: a_value(column, number) for number, column in enumerate(table.columns)}
    keys = [(column.key, key.column) for column in table.columns for key in column.foreign_keys]
    foreign_keys = {name: a_row(column.table)[column.key] for name, column in keys}
    own = {"id": f"{table.name}'s", "workspace_id": "workspace's"}
    return values | {name: value for name, value in own.items() if name in table.columns} | foreign_keys


def rows(db: sa.Connection, tables: list[sa.Table]) -> dict[str, list[dict[str, Any]]]:
    return {table.name: [dict(row) for row in db.execute(sa.select(table)).mappings()] for table in tables}


CATALOGUE = {
    "columns": """
        SELECT table_name, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public'
    """,
    "rights on columns": """
        SELECT grantee, table_name, column_name, privilege_type FROM information_schema.column_privileges
        WHERE table_schema = 'public' AND grantee IN ('assent_app', 'assent_system')
    """,
    "tables": """
        SELECT relname, relkind, relrowsecurity, relforcerowsecurity, relacl::text, reloptions::text
        FROM pg_class WHERE relnamespace = 'public'::regnamespace
    """,
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
    "policies": "SELECT tablename, policyname, permissive, roles::text, cmd, qual, with_check FROM pg_policies",
    "functions": """
        SELECT oid::regprocedure::text, pg_get_functiondef(oid), proacl::text
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
    """,
    "triggers": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
}
"""A query for each kind of object in a schema."""


def schema(db: sa.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every object of the schema with its definition and rights, by kind."""
    return {kind: sorted((tuple(row) for row in db.execute(sa.text(query))), key=str) for kind, query in CATALOGUE.items()}


def test_the_tables_are_what_the_models_say(migrated: str) -> None:
    with engine(migrated).connect() as db:
        differences = compare_metadata(MigrationContext.configure(db), METADATA)
    assert not differences, "\n".join(map(str, differences))


def test_migrating_again_changes_neither_schema_nor_rows(migrated: str) -> None:
    """Each table has a row, no two columns of which have the same value."""
    tables = METADATA.sorted_tables
    with engine(migrated).begin() as db:
        for table in tables:
            db.execute(sa.insert(table).values(a_row(table)))
        rows_before, schema_before = rows(db, tables), schema(db)
    assert all(schema_before.values()), "each query sees objects"
    migrate(migrated)
    with engine(migrated).connect() as db:
        assert rows(db, tables) == rows_before
        assert schema(db) == schema_before
