"""A database for one test process: made from the migrated template, emptied between tests, with a clock that tests move."""

from dataclasses import dataclass, field

import psycopg
from psycopg import sql

TEMPLATE = "assent_template"


@dataclass(frozen=True)
class DatabaseUrls:
    """One database, by role: `admin` is a superuser, `owner` migrates, `app` and `system` are the running roles."""

    admin: str
    owner: str
    app: str
    system: str


@dataclass
class Cleaner:
    """Deletes what tests wrote. Deleting from a few small tables is quicker than TRUNCATE, which makes new files for each."""

    db: "psycopg.Connection[tuple[object, ...]]"
    statement: str = field(default="", init=False)

    def __post_init__(self) -> None:
        # Triggers and foreign keys would refuse or slow it down; rows that the migrations themselves wrote are put back.
        tables = [row[0] for row in self.db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")]
        self.db.execute("CREATE SCHEMA IF NOT EXISTS pristine")
        parts = ["SET session_replication_role = replica", "SET lock_timeout = '2s'"]
        for table in tables:
            if table == "alembic_version":
                continue
            found = self.db.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table))).fetchone()
            parts.append(f'DELETE FROM public."{table}"')
            if found and found[0]:
                self.db.execute(f'CREATE TABLE IF NOT EXISTS pristine."{table}" AS SELECT * FROM public."{table}"')
                parts.append(f'INSERT INTO public."{table}" SELECT * FROM pristine."{table}"')
        self.statement = ";".join(parts)

    def clean(self) -> None:
        """Empty the tables. A transaction that a failed test left open is ended first."""
        try:
            self.db.execute(self.statement)
        except psycopg.errors.LockNotAvailable:
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            self.db.execute(f"SELECT pg_terminate_backend(pid) {others}")
            self.db.execute(self.statement)


class Clock:
    """The database's clock, for every process that asks it. It goes on ticking."""

    def __init__(self, db: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._db = db
        self._ahead = 0.0

    def advance(self, seconds: float) -> None:
        """Move it by that many seconds, back too. Seen by every transaction that begins afterwards, not by one that is open."""
        self._ahead += seconds
        self._define(f"SELECT clock_timestamp() + interval '{self._ahead!r} seconds'")

    def reset(self) -> None:
        """Real time again."""
        if self._ahead:
            self._define("SELECT clock_timestamp()")
            self._ahead = 0.0

    def _define(self, body: str) -> None:
        self._db.execute(f"CREATE OR REPLACE FUNCTION assent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ {body} $$")


def create_database(admin_url: str, name: str) -> None:
    """A new database from the migrated template."""
    with psycopg.connect(make_url(admin_url, "postgres"), autocommit=True) as db:
        db.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        db.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER assent_owner").format(*map(sql.Identifier, (name, TEMPLATE))))


def make_url(url: str, database: str) -> str:
    """The same server and role, another database."""
    return url.rpartition("/")[0] + "/" + database
