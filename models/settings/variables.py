"""Which process of the Procfile gets which environment variable.

`assent up` passes variables to processes by this table. In production, a process refuses to start with another process's secrets.

| kind of variable | goes to |
|---|---|
| in `PRIVATE` | the processes named there |
| that the registry of providers names as a key (`api_key_env`) | `turns` |
| a setting that is not in `PRIVATE`, or in `COMMON` | every process |
| any other variable | `tools`, whose toolsets and MCP servers may need it |
"""

import logging
import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase as fits

from models.settings import Settings, settings
from models.settings.providers import check as check_providers
from models.settings.providers import key_variables

log = logging.getLogger(__name__)

PROCESSES = ("web", "turns", "tools", "sweeps", "deliver", "beat", "flower")
_ROWS = ("web", "turns", "tools", "sweeps", "deliver")
"""The processes that read and write rows. Beat and Flower need Redis alone."""
_READERS = ("web", "turns", "tools")
"""The processes that read the archive. The sweeps write it."""

PRIVATE: dict[str, tuple[str, ...]] = {
    "DATABASE_URL": _ROWS,
    "DATABASE_SYSTEM_URL": ("sweeps",),
    "DATABASE_OWNER_URL": (),  # `assent migrate` only
    "DATABASE_SCALER_URL": (),  # KEDA only
    "ASSENT_*_PASSWORD": (),  # `assent roles` only; the processes have URLs
    "REDIS_URL": PROCESSES,
    "ANTHROPIC_*": ("turns",),
    "ASSENT_AUDIT_KEY": ("sweeps",),
    "ASSENT_AUDIT_KEY_FILE": ("sweeps",),
    "ASSENT_AUDIT_HEADS_FILE": ("sweeps",),
    "ASSENT_ISSUER_SECRETS": ("web",),
    "ASSENT_SLACK_SIGNING_SECRET": ("web",),
    "ASSENT_SLACK_BOT_TOKEN": ("deliver",),
    "ASSENT_SLACK_API_URL": ("deliver",),
    "ASSENT_ARCHIVE_URL": (*_READERS, "sweeps"),
    "ASSENT_ARCHIVE_OPTIONS": (*_READERS, "sweeps"),
    "ASSENT_ARCHIVE_PRIVATE_KEYS": _READERS,
    "ASSENT_DELIVER_PRIVATE_KEYS": ("deliver",),
    "ASSENT_TURNS_PRIVATE_KEYS": ("turns",),
    "ASSENT_PUSH_PRIVATE_KEY": ("deliver",),
    "ASSENT_SMTP_URL": ("deliver",),
    "ASSENT_NOTIFICATION_URLS": ("deliver",),
    "ASSENT_PUBLIC_URL": PROCESSES,  # no secret
    "ASSENT_MCP_CONFIG": ("tools",),
    "ASSENT_TOOLSETS": ("tools",),
    "ASSENT_TOOLSET_PATH": ("tools",),
    "ASSENT_TOOLSET_FOLDER": ("tools",),
    "ASSENT_TOOLSET_WORKSPACES": ("tools",),
    "FLOWER_*": ("flower",),
    "OTEL_*": _ROWS,  # the headers for the collector may hold a token
    "*_PROXY": ("turns", "tools"),  # a proxy's URL may hold a password
    "*_proxy": ("turns", "tools"),
    "GUNICORN_CMD_ARGS": ("web",),
    "WEB_*": ("web",),
    "TOOLS_CONCURRENCY": ("tools",),
    "SWEEPS_CONCURRENCY": ("sweeps",),
    "DELIVER_CONCURRENCY": ("deliver",),
}
"""The only processes that get a variable, by its name or pattern. The first matching row counts."""

COMMON = (
    "ASSENT_UP",
    *("HOST", "PORT", "LOG_LEVEL", "ASSENT_COMMIT"),
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*"),
    *("PYTHON*", "VIRTUAL_ENV", "LD_*", "DYLD_*", "MALLOC_*", "SSL_CERT_*", "SYSTEMD_*", "NOTIFY_SOCKET"),
)
"""Variables that any program needs, by name or pattern. None is a secret."""


def names_of_settings() -> dict[str, str]:
    """Return the variable of each setting, by the setting's name."""
    prefix = Settings.model_config["env_prefix"]
    return {name: str(field.validation_alias or f"{prefix}{name}".upper()) for name, field in Settings.model_fields.items()}


def holders(variable: str) -> tuple[str, ...]:
    """Return the processes that get a variable."""
    for pattern, processes in PRIVATE.items():
        if fits(variable, pattern):
            return processes
    if variable in key_variables():
        return ("turns",)
    return PROCESSES if _is_common(variable) or variable in names_of_settings().values() else ("tools",)


def _is_common(variable: str) -> bool:
    return any(fits(variable, pattern) for pattern in COMMON)


def environment_of(process: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return those variables that a process of the Procfile gets. Any other process gets only `COMMON`."""
    if process not in PROCESSES:
        return {name: value for name, value in variables.items() if _is_common(name)}
    return {name: value for name, value in variables.items() if process in holders(name)}


def refuse_needless(*processes: str) -> None:
    """Exit with one line if this process holds another process's secret. Call it at the start, with the process's names.

    It exits as well if the registry of providers cannot be read, since the registry names keys. Outside production, a secret that
    is not needed is only a warning: on a developer's machine one shell often starts everything.
    """
    check_providers()
    needless = [name for name in _secrets(os.environ) if not set(holders(name)) & set(processes)]
    if not needless or not processes:
        return
    needed = sorted({process for name in needless for process in holders(name)})
    owners = f"only {' and '.join(needed)} may have it" if needed else "no running process may have it"
    problem = f"{', '.join(needless)}: {' and '.join(processes)} must not hold this: {owners}. Unset it (see docs/operation.md)"
    if settings().environment == "production":
        raise SystemExit(f"assent: {problem}")
    log.warning("%s", problem)


_SECRETS = (
    "DATABASE_*_URL",
    "DATABASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ASSENT_AUDIT_KEY",
    "ASSENT_AUDIT_KEY_FILE",
    "ASSENT_ISSUER_SECRETS",
    "ASSENT_SLACK_SIGNING_SECRET",
    "ASSENT_SLACK_BOT_TOKEN",
    "ASSENT_*_PRIVATE_KEYS",
    "ASSENT_PUSH_PRIVATE_KEY",
    "ASSENT_ARCHIVE_OPTIONS",
    "ASSENT_SMTP_URL",
    "ASSENT_NOTIFICATION_URLS",
)


def _secrets(variables: Mapping[str, str]) -> Iterable[str]:
    """Return the secrets among these variables that are set and not empty."""
    patterns = (*_SECRETS, *key_variables())
    return sorted(name for name, value in variables.items() if value and any(fits(name, pattern) for pattern in patterns))
