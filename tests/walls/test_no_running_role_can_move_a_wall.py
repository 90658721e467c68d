"""The roles of the processes own nothing, and cannot become another role or change the schema."""

from typing import Any

import psycopg
import pytest
from own_database import DatabaseUrls
from psycopg.errors import InsufficientPrivilege

ROLES = ["app", "system"]
FORBIDDEN = [
    "CREATE TABLE mine (a int)",
    "CREATE SCHEMA mine",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION assent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now()'",
    "ALTER TABLE session DISABLE ROW LEVEL SECURITY",
    "DROP POLICY one_workspace ON session",
    "ALTER TABLE audit ADD COLUMN mine int",
    "DROP TABLE audit",
    "SET ROLE assent_owner",
    "SET SESSION AUTHORIZATION assent_owner",
    "ALTER ROLE CURRENT_USER BYPASSRLS",
    "UPDATE alembic_version SET version_num = '0000'",
    "SET session_replication_role = replica",
]
OWNED = """
    SELECT count(*) FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid
    WHERE d.refclassid = 'pg_authid'::regclass AND d.deptype = 'o' AND r.rolname = current_user
"""


def one(db: "psycopg.Connection[Any]", text: str) -> Any:
    """The first column of the first row."""
    row = db.execute(text).fetchone()
    assert row
    return row[0]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_owns_nothing_and_is_a_member_of_no_other(database_urls: DatabaseUrls, role: str) -> None:
    with psycopg.connect(getattr(database_urls, role), autocommit=True) as db:
        assert one(db, OWNED) == 0
        assert one(db, "SELECT count(*) FROM pg_database WHERE pg_get_userbyid(datdba) = current_user") == 0
        assert one(db, "SELECT count(*) FROM pg_roles WHERE rolname <> current_user AND pg_has_role(oid, 'MEMBER')") == 0
        strong = "rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR rolreplication"
        assert one(db, f"SELECT {strong} FROM pg_roles WHERE rolname = current_user") is False


@pytest.mark.parametrize("statement", FORBIDDEN)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_cannot_change_the_schema_or_its_own_rights(database_urls: DatabaseUrls, role: str, statement: str) -> None:
    with (
        psycopg.connect(getattr(database_urls, role), autocommit=True) as db,
        pytest.raises(InsufficientPrivilege),
    ):
        db.execute(statement)
