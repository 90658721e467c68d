"""The database of one test process: created from the migrated template, emptied between tests, with a movable clock."""

from dataclasses import dataclass

import psycopg
from psycopg import sql

TEMPLATE = "assent_template"


@dataclass(frozen=True)
class DatabaseUrls:
    """The URLs of one database, by role. `admin` is a superuser, `owner` migrates, `app` and `system` are the running roles."""

    admin: str
    owner: str
    app: str
    system: str


@dataclass
class Cleaner:
    """Deletes the rows of tests. DELETE on small tables is quicker than TRUNCATE, which creates new files for each table.

    It is a function in the database, because Postgres plans a function's statements once per connection.
    """

    db: "psycopg.Connection[tuple[object, ...]]"

    def __post_init__(self) -> None:
        # The role `replica` skips triggers and foreign keys, which would refuse or delay.
        self.db.execute("SET session_replication_role = replica; SET lock_timeout = '2s'")

    def clean(self) -> None:
        """Empty the tables. End the connections of a failed test, or of a worker that is still writing, if they are in the way."""
        try:
            self.db.execute("SELECT pristine.clean()")
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            self.db.execute(f"SELECT pg_terminate_backend(pid) {others}")
            self.db.execute("SELECT pristine.clean()")


class Clock:
    """The database's clock, `assent_now()`, as every process reads it. It keeps running."""

    def __init__(self, db: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._db = db
        self._ahead = 0.0

    def advance(self, seconds: float) -> None:
        """Move the clock by `seconds`, which may be negative. Only transactions that begin afterwards see the change."""
        self._ahead += seconds
        self._define(f"SELECT clock_timestamp() + interval '{self._ahead!r} seconds'")

    def reset(self) -> None:
        """Return to real time."""
        if self._ahead:
            self._define("SELECT clock_timestamp()")
            self._ahead = 0.0

    def _define(self, body: str) -> None:
        self._db.execute(f"CREATE OR REPLACE FUNCTION assent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ {body} $$")


def create_database(admin_url: str, name: str) -> None:
    """Create the database `name` from the migrated template. Replaces an old one."""
    with psycopg.connect(make_url(admin_url, "postgres"), autocommit=True) as db:
        db.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        db.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER assent_owner").format(*map(sql.Identifier, (name, TEMPLATE))))
    with psycopg.connect(make_url(admin_url, name), autocommit=True) as db:
        _define_clean(db)


def _define_clean(db: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Create the function that empties the tables and restores the rows of the migrations, before a test has added any."""
    tables = [row[0] for row in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")]
    db.execute("CREATE SCHEMA pristine")
    parts = []
    for table in tables:
        if table == "alembic_version":
            continue
        parts.append(f'DELETE FROM public."{table}";')
        if db.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(sql.Identifier(table))).fetchone() is not None:
            db.execute(f'CREATE TABLE pristine."{table}" AS SELECT * FROM public."{table}"')
            parts.append(f'INSERT INTO public."{table}" SELECT * FROM pristine."{table}";')
    db.execute(f"CREATE FUNCTION pristine.clean() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {' '.join(parts)} END $$")


def make_url(url: str, database: str) -> str:
    """Return `url` with another database."""
    return url.rpartition("/")[0] + "/" + database
