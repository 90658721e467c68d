"""API keys at the door: whose secret it is, asked of the database every few seconds, and that it was used.

The workspace is not known before, so functions of the database look over all of them.
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
from models.pure.networks import contains

log = logging.getLogger(__name__)

CACHE_SECONDS = 3.0
"""How long a process trusts a key it has seen: a revoked key is refused everywhere after this time at the latest."""
_CACHE_SIZE = 10_000
USED_SECONDS = 60.0
"""How often a key's use is written, at most."""
_USED = """
    UPDATE api_key SET last_used_at = assent_now() WHERE id IN (
        SELECT id FROM api_key WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at <= assent_now() - %(pause)s)
        FOR NO KEY UPDATE SKIP LOCKED
    )
"""
_FIND = "SELECT id, workspace_id, scopes, environment_id, allowed_cidrs FROM assent_find_key(%(digest)s)"
_GOOD = "SELECT * FROM assent_good_keys(CAST(%(ids)s AS text[]))"


@dataclass(frozen=True)
class Bound(Principal):
    """A key that serves one environment. It opens the routes of an environment's worker, and there only what is of this one."""

    environment_id: str = ""


class AddressRefused(Exception):
    """The key is good, but not from this address."""


_known: dict[str, tuple[Principal, tuple[str, ...], float]] = {}
"""By the secret's hash: the principal, its networks (none: all), and until when this process believes it."""
_asking: dict[str, threading.Lock] = {}
_used: dict[str, float] = {}
"""When this process last wrote that a key was used."""


def authenticate(secret: str, address: str | None) -> Principal | None:
    """The principal that holds this secret, or None if nobody does (any more). Asks the database at most every CACHE_SECONDS.

    Raises AddressRefused if the key is limited to networks that `address` is not in.
    """
    if not well_formed(secret):
        return None
    digest = sha256(secret)
    # Of a thousand requests that find the memory too old at once, one asks again and the others wait for it.
    if (known := _remembered(digest)) is None:
        with _asking.setdefault(digest, threading.Lock()):
            known = _remembered(digest) or _ask(digest)
        _asking.pop(digest, None)
    if known is None:
        return None
    principal, networks = known
    if networks and not contains(networks, address):
        raise AddressRefused(address)
    _note_use(principal)
    return principal


def seen(secret: str) -> bool:
    """True if this process has known the secret as a key's, even if that is too long ago to trust it without a look-up."""
    return sha256(secret) in _known


def _remembered(digest: str) -> tuple[Principal, tuple[str, ...]] | None:
    known = _known.get(digest)
    return known[:2] if known and known[2] > time.monotonic() else None


def _ask(digest: str) -> tuple[Principal, tuple[str, ...]] | None:
    asked = time.monotonic()
    with transaction() as db:
        found = db.rows(_FIND, digest=digest)
    if not found:
        _known.pop(digest, None)
        return None
    [(key_id, workspace_id, scopes, environment_id, allowed_cidrs)] = found
    principal = Principal("api_key", key_id, workspace_id, frozenset(scopes))
    if environment_id is not None:
        principal = Bound(principal.kind, principal.id, principal.workspace_id, principal.scopes, None, environment_id)
    if len(_known) >= _CACHE_SIZE:
        _known.clear()
    networks = tuple(allowed_cidrs or ())
    _known[digest] = (principal, networks, asked + CACHE_SECONDS)
    return principal, networks


def _note_use(principal: Principal) -> None:
    """Write that the key was used, in a transaction of its own. No request waits for a locked row, or fails because of this."""
    now = time.monotonic()
    if now - _used.get(principal.id, float("-inf")) < USED_SECONDS:
        return
    if len(_used) >= _CACHE_SIZE:
        _used.clear()
    _used[principal.id] = now
    try:
        with transaction(principal.workspace_id) as db:
            db.write(_USED, id=principal.id, pause=timedelta(seconds=USED_SECONDS))
    except ERRORS as error:
        log.warning("%s: its use is not written (%s)", principal, type(error).__name__)


def good(db: Db, key_ids: list[str]) -> set[str]:
    """Those of the keys, of any workspace, that still open something, by a function of the database."""
    return {key_id for (key_id,) in db.rows(_GOOD, ids=key_ids)}


def forget() -> None:
    """Empty this process's memory of keys (tests)."""
    _known.clear()
    _used.clear()
