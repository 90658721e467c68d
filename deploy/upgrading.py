"""`assent upgrade check`: what an upgrade of a database to this release takes, before anything is changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import psycopg
from alembic.script import ScriptDirectory

from deploy.backup import release
from deploy.folder import CannotStart
from deploy.migrate import configuration
from models.database import roles
from models.database.revisions import NONE, READ, Schema

LONG_SECONDS = 5
"""A transaction that is open for longer may make the migration give up: it waits for no lock longer than that."""


@dataclass(frozen=True)
class Plan:
    """The upgrade of one database."""

    release: str
    """The release that would be installed: this one."""
    present: str
    """The revision of the schema. Empty: there is none."""
    target: str
    migrations: tuple[str, ...]
    """The migrations that would run, each as its revision and its first line."""
    downtime: bool
    """True if the processes that run now do not work with the new schema: stop them before the migration."""
    needs_backup: bool
    problems: tuple[str, ...]
    """What must be repaired before, in sentences with the remedy."""


def plan(owner_url: str) -> Plan:
    """Return the upgrade of the database to this release. Raises CannotStart if this release does not know the schema."""
    schema, since = _present(owner_url)
    scripts = ScriptDirectory.from_config(configuration(owner_url))
    target = scripts.get_current_head() or ""
    if schema.is_unknown:
        if schema.fault:
            raise CannotStart(schema.fault)
        return Plan(release(), schema.revision, schema.revision, (), False, False, tuple(_problems(owner_url, since)))
    steps = list(scripts.iterate_revisions(target, schema.revision or "base"))[::-1]
    served = steps[-1].module.serves if steps else ()
    return Plan(
        release(),
        schema.revision,
        target,
        tuple(f"{step.revision}: {(step.doc or '').strip()}" for step in steps),
        downtime=bool(steps) and bool(schema.revision) and schema.revision not in served,
        needs_backup=bool(steps) and bool(schema.revision),
        problems=tuple(_problems(owner_url, since)),
    )


def _present(owner_url: str) -> tuple[Schema, list[tuple[int, str, datetime]]]:
    """Return the schema, and the transactions that have been open for long: process id, role, begin."""
    with psycopg.connect(owner_url, connect_timeout=3, autocommit=True) as db:
        [(exists,)] = db.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchall()
        schema = Schema.of(db.execute(READ.encode()).fetchall()) if exists else NONE
        return schema, db.execute(_LONG, {"seconds": LONG_SECONDS}).fetchall()


_LONG = """
    SELECT pid, usename, xact_start FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < now() - make_interval(secs => %(seconds)s)
    ORDER BY xact_start
"""


def _problems(owner_url: str, transactions: list[tuple[int, str, datetime]]) -> Iterator[str]:
    fault = roles.too_old(roles.read_facts(owner_url))
    if fault:
        yield fault
    for pid, role, began in transactions:
        yield f"a transaction of {role} (process {pid}) is open since {began:%H:%M:%S}: end it, or the migration may give up"
    with psycopg.connect(owner_url, connect_timeout=3, autocommit=True) as db:
        missing = db.execute(_MISSING).fetchall()
    if missing:
        yield f"the role {', '.join(role for (role,) in missing)} is missing: run `assent roles` of this release"


_MISSING = """
    SELECT role FROM unnest(ARRAY['assent_owner', 'assent_app', 'assent_system', 'assent_definer']) AS role
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role)
"""
