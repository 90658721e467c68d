"""KEDA asks the database how many rows wait in a queue and how many are worked on, as a role that may ask nothing else."""

from functools import cache
from typing import Any

import psycopg
import pytest
from local.deployed import FULL, rendered
from own_database import Clock, DatabaseUrls
from psycopg.errors import InsufficientPrivilege
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.workspace.halt import Halt


@cache
def queries() -> dict[str, str]:
    """The chart's queries, by queue."""
    return {
        item["spec"]["scaleTargetRef"]["name"].removeprefix("assent-"): item["spec"]["triggers"][0]["metadata"]["query"]
        for item in rendered(FULL)
        if item["kind"] == "ScaledObject"
    }


def as_scaler(urls: DatabaseUrls, query: str) -> list[tuple[Any, ...]]:
    """The rows that a query returns to KEDA's role."""
    with psycopg.connect(urls.admin, autocommit=True) as db:
        db.execute("SET SESSION AUTHORIZATION assent_scaler")
        return db.execute(query.encode()).fetchall()


def rows_of(urls: DatabaseUrls) -> dict[str, int]:
    """What KEDA reads of each queue."""
    return {queue: as_scaler(urls, query)[0][0] for queue, query in queries().items()}


def test_rows_that_wait_and_rows_that_are_worked_on_count(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    assert rows_of(database_urls) == {"turns": 0, "tools": 0, "deliver": 0}
    session_id = stage.session(bash="always_allow")
    stage.message(session_id)
    first, second = stage.reply(session_id, call(), call())
    stage.message(stage.session())
    clock.advance(1)
    assert rows_of(database_urls) == {"turns": 1, "tools": 2, "deliver": 0}
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None, "another worker has the files"
    assert rows_of(database_urls) == {"turns": 1, "tools": 1, "deliver": 0}, "what no worker may run needs no worker"


def test_what_is_halted_needs_no_worker(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    stage.message(stage.session())
    clock.advance(1)
    assert rows_of(database_urls)["turns"] == 1
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    assert rows_of(database_urls)["turns"] == 0


def test_the_role_may_call_that_function_and_nothing_else(database_urls: DatabaseUrls) -> None:
    facts = """
        SELECT ARRAY(SELECT p.proname::text FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef
                     AND has_function_privilege(role.oid, p.oid, 'EXECUTE')),
               ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
                     AND has_any_column_privilege(role.oid, c.oid, 'SELECT, INSERT, UPDATE')),
               rolcanlogin, rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole
        FROM pg_roles role WHERE rolname = 'assent_scaler'
    """
    with psycopg.connect(database_urls.admin) as db:
        assert db.execute(facts).fetchall() == [(["assent_read_queues"], [], True, False)]
    for query in ("SELECT FROM session", "SELECT * FROM assent_read_metrics('unknown', 1, 1)"):
        with pytest.raises(InsufficientPrivilege):
            as_scaler(database_urls, query)


def test_a_role_that_is_created_after_the_migration_gets_its_right(database_urls: DatabaseUrls) -> None:
    """`deploy/roles.sql` grants the function that it finds, in the database that it names."""
    from deploy.embedded_postgres import ROLES_SQL

    statement = ROLES_SQL.read_text().partition("\\connect :database\n")[2].replace("\\gexec", "")
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute("REVOKE EXECUTE ON FUNCTION assent_read_queues FROM assent_scaler")
        [(grant,)] = db.execute(statement.encode()).fetchall()
        db.execute(grant.encode())
    assert rows_of(database_urls)["turns"] == 0
