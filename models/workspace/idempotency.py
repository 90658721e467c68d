"""The answers that were given, so that a request sent again gets its answer again.

An answer is stored in the transaction of its effect.

| request | found again by | for |
|---|---|---|
| with `Idempotency-Key` | principal, method, path, key | 24 hours |
| an SDK's, without a key, that means it once | principal, method, path, body | 10 minutes, by a retry |
| an SDK's, without a key, that may be meant anew | the same | 10 minutes, by a retry, until it has come through |

Two sessions of one agent, or two messages with the same words, are told apart only by what became of their answers: one that has
come through to its client is nobody else's. So it is forgotten then (`came_through`), and a retry that meets one on its way waits.
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
"""An answer that was not heard of for so long after it was given may be lost."""


class Answer(Base):
    """One successful answer."""

    __tablename__ = "answer"

    id: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of what the request is found again by; of one that may be meant anew, a new id."""
    slip: Mapped[str | None]
    """SHA-256 of what a request that may be meant anew is found again by. Several may have the same."""
    workspace_id: Mapped[str]
    body_sha256: Mapped[str]
    """Of the request's body."""
    status: Mapped[int]
    text: Mapped[str]
    """The response's body as it was sent."""
    offered_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When it was last given to one that may be meant anew."""
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("answer_expiry", "expires_at"),
        sa.Index("answer_without_key", "slip", postgresql_where=sa.text("slip IS NOT NULL")),
    )


class OnItsWay(Exception):
    """An answer to the same request was given a moment ago: whether it comes through will be seen."""

    def __init__(self, asked_at: datetime) -> None:
        super().__init__(asked_at)
        self.asked_at = asked_at


# Every POST runs one of the first two, and the third: spelled once, for building them costs more than sending them.
_ALONE = "SELECT pg_advisory_xact_lock(%(lock)s)"
_BESIDE = "SELECT pg_advisory_xact_lock_shared(%(lock)s)"
_KEEP = """
    INSERT INTO answer (id, slip, workspace_id, body_sha256, status, text, offered_at, expires_at)
    VALUES (%(id)s, %(slip)s, %(workspace)s, %(body)s, %(status)s, %(text)s, CASE WHEN %(anew)s THEN assent_now() END,
        assent_now() + %(kept)s)
    ON CONFLICT (id) DO UPDATE
    SET body_sha256 = excluded.body_sha256, status = excluded.status, text = excluded.text, expires_at = excluded.expires_at
"""
_FORGET = "SELECT assent_forget_answers(CAST(%(ids)s AS text[]))"


@dataclass(frozen=True)
class Slip:
    """How a request is known again."""

    found_by: str
    body_sha256: str
    replays: bool
    """Whether an answer from before may be this request's answer: it has a key, or says that it is a retry."""
    anew: bool
    """Whether the same request may be another one: it has no key, and its effect can be had twice."""
    seconds: int
    """How long the answer is kept."""

    @classmethod
    def of(
        cls, principal: Principal, method: str, path: str, body: bytes, *, key: str | None, retry: int, once: bool = False
    ) -> "Slip":
        """The slip of a request with this idempotency key, or of an SDK's without one, at its `retry`-th retry.

        `once`: whoever sends it twice means it once.
        """
        body_sha256 = hashlib.sha256(body).hexdigest()
        kind, by = ("key", key) if key is not None else ("body", body_sha256)
        said = "\n".join((principal.workspace_id, str(principal), method, path, kind, by))
        found_by = hashlib.sha256(said.encode()).hexdigest()
        if key is not None:
            return cls(found_by, body_sha256, replays=True, anew=False, seconds=KEY_SECONDS)
        return cls(found_by, body_sha256, replays=retry > 0, anew=not once, seconds=RETRY_SECONDS)

    def find(self, db: Db, asked_at: datetime | None = None) -> Answer | None:
        """The answer given before, if this request is the same again; while the other is under way this waits for it.

        Raises Conflict when the key was used with another body; OnItsWay when it is too early to say: ask again in a moment, then
        with its `asked_at`.
        """
        # First tries are not each other's affair.
        lock = int.from_bytes(bytes.fromhex(self.found_by)[:8], signed=True)
        db.write(_ALONE if self.replays else _BESIDE, lock=lock)
        if not self.replays:
            return None
        if self.anew:
            return self._lost(db, asked_at or clock.now(db))
        found = db.first(Answer, f"WHERE id = %(id)s AND expires_at > {clock.STARTED}", id=self.found_by)
        if found and found.body_sha256 != self.body_sha256:
            raise Conflict("Idempotency-Key: this key was used with another body; use a new key for a new request.")
        return found

    def _lost(self, db: Db, asked_at: datetime) -> Answer | None:
        """The one that may be lost for the longest time. What was first given after `asked_at` is the answer to another request."""
        mine = f"WHERE slip = %(slip)s AND expires_at > {clock.STARTED} AND expires_at - %(kept)s <= %(asked_at)s"
        # Locked: it may be forgotten just now.
        oldest = f"{mine} ORDER BY offered_at LIMIT 1 FOR UPDATE"
        found = db.first(Answer, oldest, slip=self.found_by, kept=timedelta(seconds=self.seconds), asked_at=asked_at)
        if found is None:
            return None
        now = clock.now(db)
        assert found.offered_at, "it was given"
        if found.offered_at > now - timedelta(seconds=ON_ITS_WAY_SECONDS):
            raise OnItsWay(asked_at)
        found.offered_at = now
        return found

    def keep(self, db: Db, principal: Principal, status: int, text: str) -> str:
        """Store the answer, in the transaction of its effect; its id."""
        row_id, slip = (ids.new("answ"), self.found_by) if self.anew else (self.found_by, None)
        said = {"id": row_id, "slip": slip, "workspace": principal.workspace_id, "body": self.body_sha256, "anew": self.anew}
        db.write(_KEEP, **said, status=status, text=text, kept=timedelta(seconds=self.seconds))
        return row_id


def came_through(answer_ids: list[str]) -> None:
    """Forget answers to requests that may be meant anew: their clients have them."""
    with transaction() as db:
        db.rows(_FORGET, ids=answer_ids)
