"""Stored responses, with which a request that is sent again gets its response again.

A response is stored in the transaction of its effect.

| request | stored under | kept for |
|---|---|---|
| with `Idempotency-Key` | principal, method, path, key | 24 hours |
| of an SDK, without a key | principal, method, path, body | 10 minutes, for a retry |

Without a key, equal requests have equal slips: two messages with the same text, two sessions of one agent. A retry gets the only
stored response. Several may belong to other requests, so the retry is refused, unless a repetition of the request is always a
retry. What remains: a retry gets the response of an equal request within ten minutes if its own first try had no effect.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.audit.principal import Principal
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict

KEY_SECONDS = 24 * 3600
RETRY_SECONDS = 10 * 60


class StoredResponse(Base):
    """The response to a successful request."""

    __tablename__ = "stored_response"

    id: Mapped[str] = mapped_column(primary_key=True)
    slip: Mapped[str]
    """SHA-256 of what the response is stored under. Equal requests without a key share one."""
    workspace_id: Mapped[str]
    body_sha256: Mapped[str]
    """SHA-256 of the request's body."""
    text: Mapped[str]
    """The response's body as it was sent."""
    about: Mapped[str | None]
    """The id of the session, person, invitation or channel that the response is about. It goes when that one is erased."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("stored_response_expiry", "expires_at"),
        sa.Index("stored_response_slip", "slip", "expires_at"),
        sa.Index("stored_response_about", "about", postgresql_where=sa.text("about IS NOT NULL")),
    )


# Every POST with a slip runs one of the first two statements, and the third.
_LOCK = "SELECT pg_advisory_xact_lock(%(lock)s)"
_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(%(lock)s)"
_STORE = """
    INSERT INTO stored_response (id, slip, workspace_id, body_sha256, text, expires_at, about)
    VALUES (%(id)s, %(slip)s, %(workspace)s, %(body)s, %(text)s, assent_now() + %(kept)s, %(about)s)
"""


@dataclass(frozen=True)
class Slip:
    """What a request's response is stored under, and how it is looked up."""

    sha256: str
    """SHA-256 of the principal, the method, the path, and the key or the body."""
    body_sha256: str
    replays: bool
    """True if a stored response may be this request's: the request has a key, or is marked as a retry."""
    once: bool
    """True if a repetition is always a retry: the request has a key, or its effect cannot happen twice."""
    seconds: int
    """How long the response is kept."""

    @classmethod
    def of(
        cls, principal: Principal, method: str, path: str, body: bytes, *, key: str | None, retry: int, once: bool = False
    ) -> "Slip":
        """Return the slip of a request with this idempotency key, or of an SDK's request without one, at its `retry`-th retry.

        `once`: a repetition of this request is always a retry.
        """
        body_sha256 = hashlib.sha256(body).hexdigest()
        kind, by = ("key", key) if key is not None else ("body", body_sha256)
        whole = "\n".join((principal.workspace_id, str(principal), method, path, kind, by))
        sha256 = hashlib.sha256(whole.encode()).hexdigest()
        if key is not None:
            return cls(sha256, body_sha256, replays=True, once=True, seconds=KEY_SECONDS)
        return cls(sha256, body_sha256, replays=retry > 0, once=once, seconds=RETRY_SECONDS)

    def find(self, db: Db) -> StoredResponse | None:
        """Return the stored response if this request repeats another. Waits while the other request is being processed.

        Raises Conflict if the key was used with another body, or if nobody can tell which of several equal requests is repeated.
        """
        # First tries share the lock, so that they do not wait for each other.
        lock = int.from_bytes(bytes.fromhex(self.sha256)[:8], signed=True)
        db.write(_LOCK if self.replays else _LOCK_SHARED, lock=lock)
        if not self.replays:
            return None
        newest = f"WHERE slip = %(slip)s AND expires_at > {clock.STARTED} ORDER BY expires_at DESC LIMIT 2"
        responses = db.find(StoredResponse, newest, slip=self.sha256)
        if not responses:
            return None
        if responses[0].body_sha256 != self.body_sha256:
            raise Conflict("Idempotency-Key: this key was used with another body; use a new key for a new request.")
        if len(responses) > 1 and not self.once:
            raise Conflict(
                "Idempotency-Key: several equal requests took effect within the last minutes, and without a key nobody can tell "
                "which of them this retry repeats. Nothing was done: look up whether your request took effect, and send a key of "
                "its own with each request."
            )
        return responses[0]

    def store(self, db: Db, principal: Principal, text: str, about: str | None = None) -> None:
        """Store the response, in the transaction of its effect. `about`: as in the row."""
        values = {"id": ids.new("resp"), "slip": self.sha256, "workspace": principal.workspace_id, "body": self.body_sha256}
        db.write(_STORE, **values, text=text, kept=timedelta(seconds=self.seconds), about=about)
