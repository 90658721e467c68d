"""Start-up checks of the database's roles. Row-level security does not bind superusers, owners and roles with BYPASSRLS, so a
running process refuses to use one."""

import logging
from dataclasses import dataclass

import psycopg

from models.settings import settings
from models.settings.variables import refuse_needless

log = logging.getLogger(__name__)

OLDEST = 15
"""The oldest supported major version of PostgreSQL."""

_FACTS = """
SELECT current_setting('server_version_num')::int / 10000, current_user, rolsuper, rolbypassrls,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND pg_has_role(current_user, c.relowner, 'MEMBER'))
       OR EXISTS (SELECT FROM pg_database d WHERE datname = current_database() AND pg_has_role(current_user, d.datdba, 'MEMBER'))
       OR EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                  WHERE n.nspname = 'public' AND p.prosecdef AND pg_has_role(current_user, p.proowner, 'MEMBER')),
       '0' IN (current_setting('statement_timeout'), current_setting('lock_timeout'),
               current_setting('idle_in_transaction_session_timeout'))
FROM pg_roles WHERE rolname = current_user
"""


@dataclass(frozen=True)
class Facts:
    """The server's version and the role's rights."""

    version: int
    role: str
    superuser: bool
    bypasses: bool
    """True if the role has BYPASSRLS."""
    owns: bool
    """True if the role owns the database, a table, or a function that runs with its owner's rights."""
    unlimited: bool
    """True if one of the role's time limits is missing. Without a pooler each connection sets them."""


def read_facts(url: str) -> Facts:
    """Return the facts of the database behind a URL. Raises psycopg.Error if it is away for 3 s, or refuses the role."""
    with psycopg.connect(url, connect_timeout=3, autocommit=True) as db:
        row = db.execute(_FACTS).fetchone()
    assert row, "a connected role is in pg_roles"
    return Facts(*row)


def too_old(facts: Facts) -> str | None:
    """Return the fault of a server that is too old, with its remedy; None if the version is supported."""
    if facts.version >= OLDEST:
        return None
    return f"this is PostgreSQL {facts.version}, which is too old: use {OLDEST} or newer"


def too_strong(facts: Facts) -> str | None:
    """Return the fault of a running role with too many rights, with its remedy; None if the role is right."""
    remedy = "use the roles that deploy/roles.sql creates"
    if facts.superuser:
        return f"the role {facts.role} is a superuser, which no policy of the database binds: {remedy}"
    if facts.bypasses:
        return f"the role {facts.role} has BYPASSRLS, so workspaces would not be kept apart: {remedy}"
    if facts.owns:
        return f"the role {facts.role} owns the database or its tables, so it could change its own limits: {remedy}"
    return None


def too_patient(facts: Facts) -> str | None:
    """Return the fault of a role without time limits behind a pooler, with its remedy; None if the role is right."""
    if not (settings().database_pooler and facts.unlimited):
        return None
    remedy = "run deploy/roles.sql again, then RECONNECT in the pooler's console"
    return f"the role {facts.role} has no time limits, and a pooler (ASSENT_DATABASE_POOLER) passes none on: {remedy}"


def check_start(*processes: str) -> None:
    """Exit with one line if this process must not start. Call it at the start, with the process's names in the Procfile.

    Faults: another process's secrets in the environment, a missing system role, a role with too many rights, a server that is too
    old, a role without time limits behind a pooler. A database that is away is only logged: the process waits for it, as it
    would later.
    """
    refuse_needless(*processes)
    running = {"DATABASE_URL": settings().database_url}
    if "sweeps" in processes:
        running["DATABASE_SYSTEM_URL"] = settings().database_system_url
        if not running["DATABASE_SYSTEM_URL"]:
            raise SystemExit("assent: DATABASE_SYSTEM_URL is not set: the sweeps need the URL of the role assent_system")
    for variable, url in running.items():
        try:
            facts = read_facts(url)
        except psycopg.Error as error:
            log.warning("%s: the database does not respond yet (%s)", variable, type(error).__name__)
            continue
        problem = too_old(facts) or too_strong(facts) or too_patient(facts)
        if problem:
            raise SystemExit(f"assent: {variable}: {problem}")
