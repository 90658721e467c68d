"""Migrates the schema to this release, and checks its version. Configures Alembic without a file at the root."""

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from deploy.folder import CannotStart
from models.database import revisions
from models.database.revisions import Schema

_LOCK = 7_236_001
"""Advisory lock. Of several simultaneous starts, one migrates and the others wait."""


def configuration(url: str) -> Config:
    """Return Alembic's configuration for a database. `models/migrations/env.py` reads its main option `sqlalchemy.url`."""
    config = Config()
    config.set_main_option("script_location", str(revisions.SCRIPTS))
    config.set_main_option("sqlalchemy.url", _address(url).render_as_string(hide_password=False).replace("%", "%%"))
    return config


def migrate(owner_url: str) -> None:
    """Migrate the schema to this release, as the owner. Idempotent. A newer schema that serves this release stays as it is.

    Raises CannotStart if the schema has a revision that this release does not know, or if the database refuses a statement.
    """
    engine = sa.create_engine(_address(owner_url), poolclass=NullPool)
    try:
        with engine.connect() as guard:
            guard.execute(sa.select(sa.func.pg_advisory_lock(_LOCK)))
            exists = sa.inspect(guard).has_table("alembic_version")
            schema = Schema.of(guard.execute(sa.text(revisions.READ))) if exists else revisions.NONE
            guard.commit()  # keeps the lock, which is the connection's
            if not schema.is_unknown:
                command.upgrade(configuration(owner_url), "head")
            elif schema.fault:
                raise CannotStart(schema.fault)
    except DBAPIError as error:
        raise CannotStart(f"the migration failed, and the schema is as before: {_line(error.orig)}") from error


def check_current(url: str) -> str | None:
    """Return the schema's fault, in one line with the remedy; None if this release works with the schema."""
    try:
        with psycopg.connect(url, connect_timeout=3) as db:
            return Schema.of(db.execute(revisions.READ.encode()).fetchall()).fault
    except psycopg.errors.UndefinedTable:
        return revisions.NONE.fault
    except psycopg.Error as error:
        return f"the schema's version cannot be read ({_line(error)}): run `assent migrate` as the owner"


def _line(error: BaseException | None) -> str:
    return str(error).strip().partition("\n")[0]


def _address(url: str) -> sa.URL:
    return sa.make_url(url).set(drivername="postgresql+psycopg")
