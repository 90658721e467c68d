"""The walls hold only for roles that they bind: what the running roles must not be able to do."""

import logging
from dataclasses import dataclass

import psycopg

from models.settings import settings

log = logging.getLogger(__name__)

OLDEST = 15
"""Major version of PostgreSQL."""

_FACTS = """
SELECT current_setting('server_version_num')::int / 10000, current_user, rolsuper, rolbypassrls,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND pg_has_role(current_user, c.relowner, 'MEMBER'))
       OR EXISTS (SELECT FROM pg_database d WHERE datname = current_database() AND pg_has_role(current_user, d.datdba, 'MEMBER'))
FROM pg_roles WHERE rolname = current_user
"""


@dataclass(frozen=True)
class Facts:
    """What a connection says about its server and its role."""

    version: int
    role: str
    superuser: bool
    bypasses: bool
    owns: bool


def look(url: str) -> Facts:
    """Ask the database behind a URL. Raises psycopg.Error when it does not answer within 3 s or does not let us in."""
    with psycopg.connect(url, connect_timeout=3, autocommit=True) as db:
        row = db.execute(_FACTS).fetchone()
    assert row, "a connected role is in pg_roles"
    return Facts(*row)


def too_old(facts: Facts) -> str | None:
    """What to say about the server's version, None when it will do."""
    if facts.version >= OLDEST:
        return None
    return f"this is PostgreSQL {facts.version}, which is too old: use {OLDEST} or newer"


def too_strong(facts: Facts) -> str | None:
    """What to say about a running role that may do more than it should, None when it is right."""
    remedy = "use the roles that deploy/roles.sql creates"
    if facts.superuser:
        return f"the role {facts.role} is a superuser, which no policy of the database binds: {remedy}"
    if facts.bypasses:
        return f"the role {facts.role} has BYPASSRLS, so workspaces would not be kept apart: {remedy}"
    if facts.owns:
        return f"the role {facts.role} owns the database or its tables, so it could change its own limits: {remedy}"
    return None


def refuse_too_strong() -> None:
    """Called as each process starts: exit, with one line, if a running role is too strong or its server too old.

    A database that does not answer now is no reason: it is waited for, as it would be later.
    """
    running = {"DATABASE_URL": settings().database_url, "DATABASE_SYSTEM_URL": settings().database_system_url}
    for variable, url in running.items():
        try:
            facts = look(url)
        except psycopg.Error as error:
            log.warning("%s: the database does not answer yet (%s)", variable, type(error).__name__)
            continue
        problem = too_old(facts) or too_strong(facts)
        if problem:
            raise SystemExit(f"assent: {variable}: {problem}")
