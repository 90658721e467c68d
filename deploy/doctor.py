"""`assent doctor`: examines an installation's rows and its configuration. docs/operation.md lists the checks.

It reads what the environment names, so it sees the configuration of the machine and of the variables with which it is called.
"""

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import psycopg
import redis

from deploy import procfile
from deploy.migrate import check_current
from deploy.probes import ShellProbe
from models import DISTRIBUTION
from models.audit import alarm, seal_key, signed_heads
from models.database import roles
from models.database.transactions import transaction
from models.operate.doctor import parts, work
from models.operate.doctor.finding import Advice, Finding, Level
from models.settings import broker, settings
from models.settings.providers import ProvidersMisconfigured, registry
from models.settings.variables import PRIVATE, PROCESSES
from workers.schedule import BEAT

MOST_SKEW_SECONDS = 5.0
"""Signatures and sign-ins compare clocks of machines. Deadlines and leases have the database's clock alone."""
OLDEST_REDIS = (6, 2)
FULL = 0.9
"""Share of Postgres' connections in use from which on it is nearly full."""
_CONNECTIONS = """
    SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""
_COPIES = re.compile(r"(?:--workers|--pool prefork --concurrency) \$\{\w+:-(\d+)\}")


def examine(*, every_session: bool = False, shell: bool = True) -> list[Finding]:
    """Return what is wrong, the worst first. `shell`: also whether agents' commands can run on this machine.

    Raises psycopg.Error if a database that answered goes away.
    """
    probe = ShellProbe() if shell else None
    findings = [*_roles(), *_environment()]
    if not any(finding.level == "critical" for finding in findings):
        findings += _schema()
    if not any(finding.level == "critical" for finding in findings):
        findings += [*_database(), *work.findings(every_session=every_session), *parts.findings(), *_sweeps(), *_unsealed()]
    findings += [*_redis(), *_audit_keys(), *_secret_keys()]
    if probe and not probe.works():
        findings.append(_no_shell())
    return sorted(findings, key=lambda finding: ("critical", "warning", "info").index(finding.level))


def connections() -> dict[str, int]:
    """Return the most connections to Postgres that one process of each name in the Procfile opens, by the present settings."""
    size, lines = settings().database_pool_size, procfile.lines()
    return {
        name: (int(match[1]) if (match := _COPIES.search(lines[name])) else 1)
        * (size * sum(name in PRIVATE[url] for url in ("DATABASE_URL", "DATABASE_SYSTEM_URL")) + (name in HEARTBEATS))
        for name in PROCESSES
    }


HEARTBEATS = ("turns", "tools")
"""The processes that keep a connection for the renewal of leases."""


def _of(check: str, level: Level, title: str, why: str, to_do: str) -> Finding:
    return Finding(check, level, title, why, "nothing", to_do)


def _roles() -> Iterator[Finding]:
    """Yield the faults of the database's roles, and a database that does not answer."""
    urls = {"DATABASE_URL": settings().database_url, "DATABASE_SYSTEM_URL": settings().database_system_url}
    for variable, url in urls.items():
        if not url:
            yield _of("roles", "critical", f"{variable} is not set", "the doctor reads all workspaces by it", f"set {variable}")
            continue
        try:
            facts = roles.read_facts(url)
        except psycopg.Error as error:
            why = " ".join(str(error).split())[:300]
            by_itself = "every process waits for the database and goes on when it answers; no work is lost"
            silent = _of("database", "critical", f"the database of {variable} does not answer", why, "start the database")
            yield replace(silent, by_itself=by_itself)
            continue
        for fault in filter(None, (roles.too_old(facts), roles.too_strong(facts), roles.too_patient(facts))):
            yield _of("roles", "critical", f"{variable} has a wrong role or server", fault, "do what the reason says")


def _schema() -> Iterator[Finding]:
    fault = check_current(settings().database_url)
    if fault:
        yield _of("schema", "critical", "the schema does not serve this release", fault, "`assent upgrade check` says the way")


def _environment() -> Iterator[Finding]:
    try:
        registry()
    except ProvidersMisconfigured as error:
        yield _of("providers", "critical", "the registry of providers cannot be read", str(error), "repair ASSENT_PROVIDERS")
    if settings().environment == "development":
        why = "processes only warn of wrong secrets, and commands may run without a sandbox"
        yield _of("environment", "info", "this is no production (ASSENT_ENVIRONMENT)", why, "leave the variable out in production")


def _database() -> Iterator[Finding]:
    """Yield too few connections, and clocks that differ."""
    with psycopg.connect(settings().database_url, connect_timeout=3, autocommit=True) as db:
        (most, in_use), = db.execute(_CONNECTIONS).fetchall()  # fmt: skip
        before = time.time()
        (at, ours), = db.execute("SELECT clock_timestamp(), assent_now()").fetchall()  # fmt: skip
        after = time.time()
    needed = sum(connections().values())
    if not settings().database_pooler and needed > most:
        why = f"one of each process may open {needed} connections, and Postgres has {most} for them"
        yield _crowded("Postgres may refuse connections", why)
    if in_use > FULL * most:
        why = f"{in_use} of {most} connections are in use"
        yield _crowded("Postgres is nearly full", why)
    skew = max(before - at.timestamp(), at.timestamp() - after, 0.0)
    if skew > MOST_SKEW_SECONDS:
        why = f"this machine's clock differs from the database's by {skew:.0f} s"
        yield _of("clocks", "warning", "clocks differ", why, "synchronise both by NTP: signatures of webhooks and sign-ins need it")
    if abs((ours - at).total_seconds()) > 1:
        why = "the database's function assent_now() does not return the time"
        yield _of("clocks", "critical", "the clock of deadlines is moved", why, "run `assent migrate`, or restore the function")


def _crowded(title: str, why: str) -> Finding:
    by_itself = "a process waits a few seconds, then leaves the work to the sweeps; nothing is lost"
    return replace(_of("connections", "warning", title, why, "docs/scaling.md has three ways"), by_itself=by_itself)


def _redis() -> Iterator[Finding]:
    try:
        with broker.client(2) as client:
            number = str(client.info("server")["redis_version"])
    except (redis.RedisError, OSError) as error:
        why, by_itself = f"it does not answer ({type(error).__name__})", "sweeps hint what waits once it is back; nothing is lost"
        yield replace(_of("redis", "critical", "Redis is away", why, "start Redis, or repair REDIS_URL"), by_itself=by_itself)
        return
    if tuple(int(part) for part in number.split(".")[:2]) < OLDEST_REDIS:
        yield _of("versions", "warning", f"Redis {number} is old", "Assent is tested with 6.2 and newer", "upgrade Redis")


def _sweeps() -> Iterator[Finding]:
    """Yield the sweeps that did not succeed for long. A sweep that never succeeded is not known to be late."""
    pauses = {entry["task"]: float(entry["schedule"]) for entry in BEAT.values()}
    with transaction(role="system") as db:
        rows = db.rows(_SUCCEEDED)
    late = [(sweep, "", at) for sweep, seconds, at in rows if sweep in pauses and seconds > 3 * pauses[sweep] + SLOW]
    if late:
        yield Finding.of(_LATE_SWEEPS, late)


SLOW = 120.0
"""Seconds by which the success of a sweep may be recorded late."""
_SUCCEEDED = """
    SELECT labels ->> 'sweep', extract(epoch FROM assent_now())::float8 - value, to_timestamp(value) FROM metric
    WHERE name = 'assent_sweep_last_success_timestamp_seconds' ORDER BY value
"""
_LATE_SWEEPS = Advice(
    "sweeps",
    "critical",
    "sweeps that have not succeeded for long",
    "no process `beat` or `sweeps` runs, Redis is away, or the sweep fails",
    "nothing, until they run again: no deadline passes, and no lost message is sent again",
    "start the processes `beat` and `sweeps`; their log names the error of a sweep that fails",
)


def _unsealed() -> Iterator[Finding]:
    behind = alarm.unsealed()
    if behind:
        yield Finding.of(_UNSEALED, [("", workspace_id, at) for workspace_id, at in behind])


_UNSEALED = Advice(
    "audit_unsealed",
    "critical",
    "workspaces whose audit nobody seals",
    "no process `sweeps` with the audit's key runs",
    "acts are sealed as soon as a sealer runs again; until then they can be changed unnoticed",
    "start the process `sweeps` with ASSENT_AUDIT_KEY and its file of signed heads",
)


def _audit_keys() -> Iterator[Finding]:
    """Yield an unreadable key of the audit, and a sealer without its file of heads."""
    try:
        keys, own = seal_key.trusted_keys(), seal_key.own()
        if own is not None:
            with signed_heads.open_file(signed_heads.path(), seconds=1):
                pass
    except (OSError, ValueError) as error:
        yield _of("audit_key", "critical", "a key of the audit cannot be read", str(error), "repair ASSENT_AUDIT_KEY and its like")
    except signed_heads.NoHeads as error:
        yield _of("audit_key", "critical", "the sealer has no memory", str(error), "do what the reason says")
    except signed_heads.InUse:
        return  # a sealer is at work
    else:
        if not keys:
            why = "neither ASSENT_AUDIT_KEY nor ASSENT_AUDIT_PUBLIC_KEYS is set here"
            yield _of("audit_key", "warning", "nothing here verifies the audit", why, "put `assent audit head` into the second")


def _secret_keys() -> Iterator[Finding]:
    for reader in ("deliver", "turns"):
        if not getattr(settings(), f"{reader}_public_key"):
            variable = f"ASSENT_{reader.upper()}_PUBLIC_KEY"
            why = f"{variable} is not set here"
            yield _of("secret_keys", "info", "no secret can be stored", why, "`assent secrets keys` makes a pair of keys")
    if not settings().archive_public_key:
        why, to_do = "ASSENT_ARCHIVE_PUBLIC_KEY is not set here", "`assent secrets keys archive` makes a pair of keys"
        yield _of("archive_key", "info", "no old session is archived", why, to_do)


def _no_shell() -> Finding:
    why = "bubblewrap is missing or does not work here"
    to_do = "docs/deployment.md says what bubblewrap needs; ignore this where no `tools` process runs"
    finding = _of("sandbox", "warning", "agents' commands cannot run on this machine", why, to_do)
    return replace(finding, by_itself="each command is refused with the reason")


def versions() -> dict[str, str]:
    """Return the versions of this release, of Python, and of the database's server."""
    try:
        release = version(DISTRIBUTION)
    except PackageNotFoundError:
        release = "unknown"
    return {"assent": release, "python": sys.version.split()[0], "at": datetime.now(UTC).isoformat(timespec="seconds")}
