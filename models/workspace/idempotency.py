"""Stored answers, with which a repeated request is answered again.

An answer is stored in the transaction of its effect.

| request | key of its answer | kept for |
|---|---|---|
| with `Idempotency-Key` | principal, method, path, key | 24 hours |
| of an SDK, without a key, whose repetition is always a retry | principal, method, path, body | 10 minutes, for a retry |
| of an SDK, without a key, whose repetition may be a new request | the same | 10 minutes, for a retry, until its delivery |

Two messages with the same text, or two sessions of one agent, have equal requests. Only the delivery of the answer tells a retry
from a new request: a client that has received the answer does not retry. So an answer is deleted once it is delivered
(`came_through`), and a retry waits while an answer may still be under way.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from models.audit.principal import Principal
from models.database import clock, ids
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.errors import Conflict

KEY_SECONDS = 24 * 3600
RETRY_SECONDS = 10 * 60
ON_ITS_WAY_SECONDS = 2
"""After this time without a sign of its delivery, an answer counts as lost."""


class Answer(Base):
    """One successful answer."""

    __tablename__ = "answer"

    id: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the answer's key; a new id if a repetition may be a new request."""
    slip: Mapped[str | None]
    """SHA-256 of the answer's key if a repetition may be a new request. Several answers may share one."""
    workspace_id: Mapped[str]
    body_sha256: Mapped[str]
    """SHA-256 of the request's body."""
    status: Mapped[int]
    text: Mapped[str]
    """The response's body as it was sent."""
    offered_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """The time at which the answer was last sent, if a repetition may be a new request. A time to come: until then it is under way,
    as its request still waits for the rest of the answer."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("answer_expiry", "expires_at"),
        sa.Index("answer_without_key", "slip", postgresql_where=sa.text("slip IS NOT NULL")),
    )


class OnItsWay(Exception):
    """An equal request was answered a moment ago, and the answer may still arrive. Ask again later."""

    def __init__(self, asked_at: datetime) -> None:
        super().__init__(asked_at)
        self.asked_at = asked_at


# Every POST runs one of the first two statements, and the third.
_LOCK = "SELECT pg_advisory_xact_lock(%(lock)s)"
_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(%(lock)s)"
_KEEP = """
    INSERT INTO answer (id, slip, workspace_id, body_sha256, status, text, offered_at, expires_at)
    VALUES (%(id)s, %(slip)s, %(workspace)s, %(body)s, %(status)s, %(text)s, CASE WHEN %(anew)s THEN assent_now() + %(held)s END,
        assent_now() + %(kept)s)
    ON CONFLICT (id) DO UPDATE
    SET body_sha256 = excluded.body_sha256, status = excluded.status, text = excluded.text, expires_at = excluded.expires_at
"""
_FORGET = "SELECT assent_forget_answers(CAST(%(ids)s AS text[]))"


@dataclass(frozen=True)
class Slip:
    """The key under which a request's answer is stored, and how it is looked up."""

    key_sha256: str
    """SHA-256 of the answer's key."""
    body_sha256: str
    replays: bool
    """True if a stored answer may be this request's answer: the request has a key, or is marked as a retry."""
    anew: bool
    """True if an equal request may be a new one: it has no key, and its effect can happen twice."""
    seconds: int
    """How long the answer is kept."""
    held_seconds: float = 0
    """How long the answer counts as under way, if a repetition may be a new request. `hold` prolongs it."""

    @classmethod
    def of(
        cls, principal: Principal, method: str, path: str, body: bytes, *, key: str | None, retry: int, once: bool = False
    ) -> "Slip":
        """Return the slip of a request with this idempotency key, or of an SDK's request without one, at its `retry`-th retry.

        `once`: a repetition of this request is always a retry.
        """
        body_sha256 = hashlib.sha256(body).hexdigest()
        kind, by = ("key", key) if key is not None else ("body", body_sha256)
        answer_key = "\n".join((principal.workspace_id, str(principal), method, path, kind, by))
        key_sha256 = hashlib.sha256(answer_key.encode()).hexdigest()
        if key is not None:
            return cls(key_sha256, body_sha256, replays=True, anew=False, seconds=KEY_SECONDS)
        return cls(key_sha256, body_sha256, replays=retry > 0, anew=not once, seconds=RETRY_SECONDS)

    def find(self, db: Db, asked_at: datetime | None = None) -> Answer | None:
        """Return the stored answer if this request repeats another. Waits while the other request is being processed.

        Raises Conflict if the key was used with another body. Raises OnItsWay if an answer may still be under way: call again a
        moment later, with the exception's `asked_at`.
        """
        # First attempts share the lock, so that they do not wait for each other.
        lock = int.from_bytes(bytes.fromhex(self.key_sha256)[:8], signed=True)
        db.write(_LOCK if self.replays else _LOCK_SHARED, lock=lock)
        if not self.replays:
            return None
        if self.anew:
            return self._lost(db, asked_at or clock.now(db))
        answer = db.first(Answer, f"WHERE id = %(id)s AND expires_at > {clock.STARTED}", id=self.key_sha256)
        if answer and answer.body_sha256 != self.body_sha256:
            raise Conflict("Idempotency-Key: this key was used with another body; use a new key for a new request.")
        return answer

    def _lost(self, db: Db, asked_at: datetime) -> Answer | None:
        """Return the answer that counts as lost for the longest time. Answers stored after `asked_at` belong to other requests."""
        mine = f"WHERE slip = %(slip)s AND expires_at > {clock.STARTED} AND expires_at - %(kept)s <= %(asked_at)s"
        # Locked, since `came_through` may be deleting it.
        oldest = f"{mine} ORDER BY offered_at LIMIT 1 FOR UPDATE"
        answer = db.first(Answer, oldest, slip=self.key_sha256, kept=timedelta(seconds=self.seconds), asked_at=asked_at)
        if answer is None:
            return None
        now = clock.now(db)
        assert answer.offered_at, "an answer with a slip was sent"
        if answer.offered_at > now - timedelta(seconds=ON_ITS_WAY_SECONDS):
            raise OnItsWay(asked_at)
        answer.offered_at = now + timedelta(seconds=self.held_seconds)
        return answer

    def keep(self, db: Db, principal: Principal, status: int, text: str) -> str:
        """Store the answer, in the transaction of its effect. Returns its id."""
        row_id, slip = (ids.new("answ"), self.key_sha256) if self.anew else (self.key_sha256, None)
        values = {"id": row_id, "slip": slip, "workspace": principal.workspace_id, "body": self.body_sha256, "anew": self.anew}
        db.write(
            _KEEP,
            **values,
            status=status,
            text=text,
            kept=timedelta(seconds=self.seconds),
            held=timedelta(seconds=self.held_seconds),
        )
        return row_id


def hold(db: Db, answer_id: str, seconds: float) -> None:
    """Have an answer count as under way for so long from now. Negative: as lost, so that a retry gets it at once."""
    until = timedelta(seconds=seconds)
    db.write("UPDATE answer SET offered_at = assent_now() + %(until)s WHERE id = %(id)s", id=answer_id, until=until)


def came_through(answer_ids: list[str]) -> None:
    """Delete answers that their clients have received."""
    with transaction() as db:
        db.rows(_FORGET, ids=answer_ids)
