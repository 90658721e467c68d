"""API keys: who may ask, and for what. The secret is shown once and stored as its SHA-256.

| scope | allows |
|---|---|
| `read` | everything that changes nothing: lists, single rows, streams, waiting approvals |
| `agents` | create, change and archive agents and environments |
| `sessions` | create, change, archive and delete sessions; send them messages, interrupts and results of client tools |
| `environment` | poll for work of self-hosted environments, acknowledge, renew and stop it; post results of client tools |
| `approvals` | decide: `user.tool_confirmation` events, `POST` under `/v1/approvals`; revoke grants |
| `reveal` | see the secrets in an approval's input (`GET /v1/approvals/{id}?reveal=true`); audited |
| `admin` | change the workspace's policy; read, verify and export the audit |

No scope contains another. A new key has `read`, `agents` and `sessions`: what a backend needs to run agents, and not
the right to decide what they ask for. An environment key, for the SDK's `EnvironmentWorker`, has `read` and `environment`:
of its whole workspace, or, bound to one environment, for what that environment's worker does there and for nothing else.
"""

import hashlib
import secrets
import threading
import time
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from models import audit, clock, ids
from models.audit_text import Text
from models.db import Base, Db, transaction
from models.environment import Environment
from models.errors import Invalid, NotFound
from models.principal import Principal, system

SCOPES = ("read", "agents", "sessions", "environment", "approvals", "reveal", "admin")
DEFAULT_SCOPES = frozenset({"read", "agents", "sessions"})
ENVIRONMENT_SCOPES = frozenset({"read", "environment"})
"""Of a key that is bound to an environment."""

PREFIX = "sk-assent-"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM = 43
"""Characters that 32 random bytes take in base 62."""
_CHECK = 6
"""Characters of the CRC-32 behind them: a typo is known without a look-up, a scanner can tell a key from noise."""

CACHE_SECONDS = 3.0
"""How long a process trusts a key it has seen: a revoked key is refused everywhere after this time at the latest."""
_CACHE_SIZE = 10_000


@dataclass(frozen=True)
class Bound(Principal):
    """A key that serves one environment. It opens the routes of an environment's worker, and there only what is of this one."""

    environment_id: str = ""


class ApiKey(Base):
    """A key of a workspace. Nothing is written when it is used."""

    __tablename__ = "api_key"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    name: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(sa.Text))
    secret_sha256: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    """The secret's last four characters, to tell keys apart in a list."""
    environment_id: Mapped[str | None]
    """The one environment that it serves. No foreign key: the row outlives the environment, and is revoked with it."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    revoked_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    _known: ClassVar[dict[str, tuple[Principal, float]]] = {}
    _asking: ClassVar[dict[str, threading.Lock]] = {}

    @classmethod
    def create(
        cls,
        db: Db,
        *,
        workspace_id: str,
        name: str,
        scopes: frozenset[str] | None = None,
        environment_id: str | None = None,
        by: Principal | None = None,
    ) -> tuple["ApiKey", str]:
        """A new key and its secret, which cannot be read again; with `environment_id`, bound to that environment.

        Raises Invalid on an unknown or empty set of scopes, and for an environment that is none or has no workers of its own.
        """
        if environment_id is not None:
            _check_bond(db, environment_id, scopes)
        if scopes is None:
            scopes = DEFAULT_SCOPES if environment_id is None else ENVIRONMENT_SCOPES
        if not scopes or not scopes <= set(SCOPES):
            raise Invalid("scopes", f"must be one or more of {', '.join(SCOPES)}.")
        secret = new_secret()
        row = cls(
            id=ids.new("key"),
            workspace_id=workspace_id,
            name=name,
            scopes=[s for s in SCOPES if s in scopes],
            secret_sha256=_sha256(secret),
            hint=secret[-4:],
            environment_id=environment_id,
            created_at=clock.now(db),
        )
        db.add(row)
        by = by or system("api_key.create", workspace_id)
        bond = {"environment_id": environment_id} if environment_id else {}
        audit.record(db, by, "api_key.created", row.id, {"name": Text(name), "scopes": row.scopes} | bond)
        return row, secret

    @classmethod
    def authenticate(cls, secret: str) -> Principal | None:
        """Who holds this secret, or None if nobody (any more). Asks the database at most every CACHE_SECONDS."""
        if not well_formed(secret):
            return None
        digest = _sha256(secret)
        # Of a thousand requests that find the memory too old at once, one asks again and the others wait for it.
        if (known := cls._remembered(digest)) is None:
            with cls._asking.setdefault(digest, threading.Lock()):
                known = cls._remembered(digest) or cls._ask(digest)
            cls._asking.pop(digest, None)
        return known

    @classmethod
    def _remembered(cls, digest: str) -> Principal | None:
        principal, until = cls._known.get(digest, (None, 0.0))
        return principal if until > time.monotonic() else None

    @classmethod
    def _ask(cls, digest: str) -> Principal | None:
        asked = time.monotonic()
        # Whose workspace it is, is what we want to know: the system role looks over all of them.
        with transaction(role="system") as db:
            wanted = sa.select(cls.id, cls.workspace_id, cls.scopes, cls.environment_id)
            found = db.execute(wanted.where(cls.secret_sha256 == digest, cls.revoked_at.is_(None))).one_or_none()
        if found is None:
            cls._known.pop(digest, None)
            return None
        principal = Principal("api_key", found.id, found.workspace_id, frozenset(found.scopes))
        if found.environment_id is not None:
            principal = Bound(principal.kind, principal.id, principal.workspace_id, principal.scopes, None, found.environment_id)
        if len(cls._known) >= _CACHE_SIZE:
            cls._known.clear()
        cls._known[digest] = (principal, asked + CACHE_SECONDS)
        return principal

    @classmethod
    def forget(cls) -> None:
        """Empty this process's memory of keys (tests)."""
        cls._known.clear()

    @classmethod
    def revoke(cls, db: Db, key_id: str, *, by: Principal) -> "ApiKey":
        """End a key's life; again is nothing. Raises NotFound."""
        row = db.get(cls, key_id, with_for_update={"key_share": True}, populate_existing=True)
        if row is None:
            raise NotFound("api_key", key_id)
        if row.revoked_at is None:
            row.revoked_at = clock.now(db)
            audit.record(db, by, "api_key.revoked", row.id, {"name": Text(row.name)})
        return row

    @classmethod
    def revoke_all(cls, db: Db, environment_id: str, *, by: Principal) -> None:
        """End the lives of the keys that are bound to an environment."""
        mine = sa.select(cls.id).where(cls.environment_id == environment_id, cls.revoked_at.is_(None)).order_by(cls.id)
        for key_id in db.scalars(mine).all():
            cls.revoke(db, key_id, by=by)


def _check_bond(db: Db, environment_id: str, scopes: frozenset[str] | None) -> None:
    """Raise Invalid unless a key can be bound to this environment, which cannot go before the transaction ends."""
    if scopes not in {None, ENVIRONMENT_SCOPES}:
        raise Invalid("scopes", "of a key that is bound to an environment are read,environment: leave them out.")
    found = db.get(Environment, environment_id, with_for_update={"read": True, "key_share": True}, populate_existing=True)
    if found is None:
        raise Invalid("environment", "there is none of this id in the workspace; GET /v1/environments lists those there are.")
    if not found.self_hosted:
        raise Invalid("environment", "our own workers run the tools of this one: it needs no key. Bind to a self-hosted one.")


def new_secret() -> str:
    """A secret such as `sk-assent-` and 49 characters: 43 random, 6 of checksum."""
    body = _base62(int.from_bytes(secrets.token_bytes(32)), _RANDOM)
    return PREFIX + body + _checksum(body)


def well_formed(secret: str) -> bool:
    """Whether this could be a secret of ours: prefix, length and checksum. Says nothing of whether it is one."""
    body = secret.removeprefix(PREFIX)
    if not secret.startswith(PREFIX) or len(body) != _RANDOM + _CHECK or not body.isascii():
        return False
    return secrets.compare_digest(_checksum(body[:_RANDOM]), body[_RANDOM:])


def _checksum(body: str) -> str:
    return _base62(zlib.crc32((PREFIX + body).encode()), _CHECK)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
