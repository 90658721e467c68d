"""Looks up the API key of a request, and writes its last use. A process caches each key for a few seconds.

The workspace is unknown before the look-up, so functions of the database search all workspaces.
"""

import logging
import threading
import time
from dataclasses import dataclass
from datetime import timedelta

from models.audit.principal import Principal
from models.database.rows import Db
from models.database.transactions import ERRORS, transaction
from models.pure.key_secret import sha256, well_formed
from models.settings.networks import contains

log = logging.getLogger(__name__)

CACHE_SECONDS = 3.0
"""How long a process trusts a cached key. After this time, every process refuses a revoked key."""
_CACHE_SIZE = 10_000
USED_SECONDS = 60.0
"""Shortest time between two writes of a key's last use."""
_USED = """
    UPDATE api_key SET last_used_at = assent_now() WHERE id IN (
        SELECT id FROM api_key WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at <= assent_now() - %(pause)s)
        FOR NO KEY UPDATE SKIP LOCKED
    )
"""
_FIND = "SELECT id, workspace_id, scopes, environment_id, allowed_cidrs, makers FROM assent_find_key(%(digest)s)"
_GOOD = "SELECT * FROM assent_good_keys(CAST(%(ids)s AS text[]))"


@dataclass(frozen=True)
class Bound(Principal):
    """A key that is bound to one environment. It opens only the routes of an environment's worker, and there only its rows."""

    environment_id: str = ""


class AddressRefused(Exception):
    """The key is valid, but not from this address."""


_cache: dict[str, tuple[Principal, tuple[str, ...], float]] = {}
"""By the secret's hash: the principal, its networks (empty: all), and the end of the cache's time."""
_lookups: dict[str, threading.Lock] = {}
"""Look-ups that are running, by the secret's hash."""
_last_uses: dict[str, float] = {}
"""By the key's id: when this process last wrote its use."""


def authenticate(secret: str, address: str | None) -> Principal | None:
    """Return the principal of this secret, or None for an unknown, ended or revoked key. Reads the database at most every
    CACHE_SECONDS.

    Raises AddressRefused if the key's networks do not contain `address`.
    """
    if not well_formed(secret):
        return None
    digest = sha256(secret)
    # Of many requests that find the cache expired at the same time, one reads the database and the others wait for it.
    if (entry := _remembered(digest)) is None:
        with _lookups.setdefault(digest, threading.Lock()):
            entry = _remembered(digest) or _look_up(digest)
        _lookups.pop(digest, None)
    if entry is None:
        return None
    principal, networks = entry
    if networks and not contains(networks, address):
        raise AddressRefused(address)
    _note_use(principal)
    return principal


def was_accepted(secret: str) -> bool:
    """True if this process has ever accepted the secret as a key's, even if the cache has expired."""
    return sha256(secret) in _cache


def _remembered(digest: str) -> tuple[Principal, tuple[str, ...]] | None:
    entry = _cache.get(digest)
    return entry[:2] if entry and entry[2] > time.monotonic() else None


def _look_up(digest: str) -> tuple[Principal, tuple[str, ...]] | None:
    start_time = time.monotonic()
    with transaction(only_reads=True) as db:
        rows = db.rows(_FIND, digest=digest)
    if not rows:
        _cache.pop(digest, None)
        return None
    [(key_id, workspace_id, scopes, environment_id, allowed_cidrs, makers)] = rows
    about = ("api_key", key_id, workspace_id, frozenset(scopes))
    principal = Principal(*about, makers=tuple(makers or ()))
    if environment_id is not None:
        principal = Bound(*about, environment_id=environment_id, makers=principal.makers)
    if len(_cache) >= _CACHE_SIZE:
        _cache.clear()
    networks = tuple(allowed_cidrs or ())
    _cache[digest] = (principal, networks, start_time + CACHE_SECONDS)
    return principal, networks


def _note_use(principal: Principal) -> None:
    """Write the key's last use, in a transaction of its own. A locked row is skipped, and a failure is only logged."""
    now = time.monotonic()
    if now - _last_uses.get(principal.id, float("-inf")) < USED_SECONDS:
        return
    if len(_last_uses) >= _CACHE_SIZE:
        _last_uses.clear()
    _last_uses[principal.id] = now
    try:
        with transaction(principal.workspace_id) as db:
            db.write(_USED, id=principal.id, pause=timedelta(seconds=USED_SECONDS))
    except ERRORS as error:
        log.warning("%s: its use is not written (%s)", principal, type(error).__name__)


def good(db: Db, key_ids: list[str]) -> set[str]:
    """Return the ids of those keys, in any workspace, that are still valid."""
    return {key_id for (key_id,) in db.rows(_GOOD, ids=key_ids)}


def forget() -> None:
    """Clear this process's cache, for tests."""
    _cache.clear()
    _last_uses.clear()
