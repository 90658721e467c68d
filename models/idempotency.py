"""The answers that were given, so that a request sent again gets its answer again.

An answer is stored in the transaction of its effect.

| request | found again by | for |
|---|---|---|
| with `Idempotency-Key` | principal, method, path, key | 24 hours |
| an SDK's, without a key | principal, method, path, body | 10 minutes, and only for a retry |
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models import clock
from models.db import Base, Db
from models.errors import Conflict
from models.principal import Principal

KEY_SECONDS = 24 * 3600
RETRY_SECONDS = 10 * 60


class Answer(Base):
    """One successful answer."""

    __tablename__ = "answer"

    id: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of what the request is found again by."""
    workspace_id: Mapped[str]
    body_sha256: Mapped[str]
    """Of the request's body."""
    status: Mapped[int]
    text: Mapped[str]
    """The response's body as it was sent."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("answer_expiry", "expires_at"),)


# Every POST runs these two, so they are spelled once: building them costs more than sending them.
_LOCK = sa.text("SELECT pg_advisory_xact_lock(:lock)")
_KEEP = sa.text("""
    INSERT INTO answer (id, workspace_id, body_sha256, status, text, expires_at)
    VALUES (:id, :workspace, :body, :status, :text, assent_now() + :kept)
    ON CONFLICT (id) DO UPDATE
    SET body_sha256 = excluded.body_sha256, status = excluded.status, text = excluded.text, expires_at = excluded.expires_at
""")


@dataclass(frozen=True)
class Slip:
    """How a request is known again."""

    id: str
    body_sha256: str
    replays: bool
    """Whether an answer from before is this request's answer: it has a key, or says that it is a retry."""
    seconds: int
    """How long the answer is kept."""

    @classmethod
    def of(cls, principal: Principal, method: str, path: str, body: bytes, *, key: str | None, retry: int) -> "Slip":
        """The slip of a request with this idempotency key, or of an SDK's without one, at its `retry`-th retry."""
        body_sha256 = hashlib.sha256(body).hexdigest()
        kind, by = ("key", key) if key is not None else ("body", body_sha256)
        said = "\n".join((principal.workspace_id, str(principal), method, path, kind, by))
        slip_id = hashlib.sha256(said.encode()).hexdigest()
        return cls(slip_id, body_sha256, key is not None or retry > 0, KEY_SECONDS if key is not None else RETRY_SECONDS)

    def find(self, db: Db) -> Answer | None:
        """The answer given before, if this request is the same again; while the other is under way this waits for it.

        Raises Conflict when the key was used with another body.
        """
        lock = int.from_bytes(bytes.fromhex(self.id)[:8], signed=True)
        db.execute(_LOCK, {"lock": lock})
        if not self.replays:
            return None
        found = db.scalar(sa.select(Answer).where(Answer.id == self.id, Answer.expires_at > clock.STARTED))
        if found and found.body_sha256 != self.body_sha256:
            raise Conflict("Idempotency-Key: this key was used with another body; use a new key for a new request.")
        return found

    def keep(self, db: Db, principal: Principal, status: int, text: str) -> None:
        """Store the answer, in the transaction of its effect."""
        said = {"id": self.id, "workspace": principal.workspace_id, "body": self.body_sha256, "status": status, "text": text}
        db.execute(_KEEP, said | {"kept": timedelta(seconds=self.seconds)})
