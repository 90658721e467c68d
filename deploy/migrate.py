"""Migrates the schema to this release, and checks its version. Configures Alembic without a file at the root."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

SCRIPTS = Path(__file__).parents[1] / "models" / "migrations"
_LOCK = 7_236_001
"""Advisory lock. Of several simultaneous starts, one migrates and the others wait."""


def configuration(url: str) -> Config:
    """Return Alembic's configuration for a database. `models/migrations/env.py` reads its main option `sqlalchemy.url`."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("sqlalchemy.url", _address(url).render_as_string(hide_password=False).replace("%", "%%"))
    return config


def migrate(owner_url: str) -> None:
    """Migrate the schema to this release, as the owner. Idempotent."""
    engine = sa.create_engine(_address(owner_url), poolclass=NullPool)
    with engine.connect() as guard:
        guard.execute(sa.select(sa.func.pg_advisory_lock(_LOCK)))
        command.upgrade(configuration(owner_url), "head")


def check_current(url: str) -> str | None:
    """Return the schema's fault, in one line with the remedy; None if this release can work with it.

    A schema newer than this release is accepted: during a deployment the previous release still runs.
    """
    scripts = ScriptDirectory.from_config(configuration(url))
    engine = sa.create_engine(_address(url), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            revisions = MigrationContext.configure(connection).get_current_heads()
    except DBAPIError as error:
        return f"the schema's version cannot be read ({str(error.orig).splitlines()[0]}): run `assent migrate` as the owner"
    known = {script.revision for script in scripts.walk_revisions()}
    if not revisions:
        return "the database has no schema yet: run `assent migrate` with DATABASE_OWNER_URL, or set that variable for `assent up`"
    if set(revisions) <= known and set(revisions) != set(scripts.get_heads()):
        return "the database's schema is older than this release: run `assent migrate` with DATABASE_OWNER_URL"
    return None


def _address(url: str) -> sa.URL:
    return sa.make_url(url).set(drivername="postgresql+psycopg")
