"""Notifications: one message per approval and channel. The message is sent with the question, and edited or followed up later."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.audit.principal import system
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.leased import Leased
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.errors import Conflict
from models.notices.channel import Channel
from models.outbox.approval_change import ApprovalChange
from models.pure.backoff import backoff

ATTEMPTS = 12
"""Most attempts at one stage, over about five hours."""
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 3600.0
LEASE = timedelta(seconds=90)
"""Longer than an attempt can take, so nothing renews it."""

_TEST_WAITS = "SELECT EXISTS (SELECT FROM notification WHERE channel_id = %(channel)s AND stage = 'test' AND ended_at IS NULL)"

Receipt = dict[str, str]
"""A notifier's reference to a sent message, for the edit or the follow-up: Slack's channel and ts, or a mail's Message-ID."""


class Notification(Leased, Base):
    """One channel's message about one approval. The states are in `models.pure.states.NOTIFICATION`."""

    __tablename__ = "notification"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`ntfn_...`"""
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    approval_id: Mapped[str]
    """No foreign key: a message outlives its approval, and then says that the approval was withdrawn. At a stage of `ALONE`: the id
    of the delegation, the flood or the test."""
    channel_id: Mapped[str] = mapped_column(sa.ForeignKey("channel.id"))
    stage: Mapped[str]
    """The stage to send: one of `models.notices.notice.Stage`."""
    seq: Mapped[int] = mapped_column(sa.BigInteger)
    """The number, in the session, of the stage's event."""
    sent_stage: Mapped[str | None]
    """The last stage that was sent; null before the first success."""
    receipt: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`Receipt` of the last success. Where a channel has incidents, also of a first attempt, which may have opened one."""
    status: Mapped[str] = mapped_column(default="queued")
    fence: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    """Attempts at the current stage."""
    error: Mapped[str] = mapped_column(default="")
    """Why the last attempt failed."""
    lease_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    task: Mapped[str | None]
    due_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    hinted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("notification_of_approval", "approval_id", "channel_id", unique=True),
        sa.Index("notification_of_channel", "channel_id"),
        sa.Index("notification_queued", "due_at", postgresql_where=sa.text("status = 'queued'")),
        sa.Index("notification_running", "lease_until", postgresql_where=sa.text("status = 'running'")),
        sa.Index("notification_ended", "ended_at", postgresql_where=sa.text("ended_at IS NOT NULL")),
    )

    @classmethod
    def of_approval(cls, db: Db, approval_id: str) -> "list[Notification]":
        """Return an approval's notifications, locked."""
        return db.find(cls, "WHERE approval_id = %(id)s ORDER BY id FOR NO KEY UPDATE", id=approval_id)

    @classmethod
    def of_change(cls, change: ApprovalChange, channel: Channel, due_at: datetime, now: datetime) -> dict[str, Any]:
        """Return the row of a queued notification that tells of a change, for `Db.insert_many`."""
        return {
            "id": ids.new("ntfn"),
            "workspace_id": change.workspace_id,
            "session_id": change.session_id,
            "approval_id": change.approval_id,
            "channel_id": channel.id,
            "stage": change.stage,
            "seq": change.seq,
            "status": "queued",
            "fence": 0,
            "attempt": 0,
            "error": "",
            "due_at": due_at.isoformat(),
            "hinted_at": now.isoformat(),
            "created_at": now.isoformat(),
        }

    @classmethod
    def test(cls, db: Db, channel: Channel) -> "Notification":
        """Queue a test message with one attempt and return the notification.

        Raises Conflict if the channel is disabled, a default, or has a test that waits.
        """
        channel.must_take_messages()
        if db.value(_TEST_WAITS, channel=channel.id):
            raise Conflict(f"A test of the channel {channel.id} is on its way: wait for its result.")
        return cls.alone(db, channel, "test", ids.new("test"))

    @classmethod
    def alone(cls, db: Db, channel: Channel, stage: str, subject_id: str) -> "Notification":
        """Queue a notification of a stage of `models.notices.notice.ALONE` and return it. `subject_id` is what it is about."""
        now = clock.now(db)
        row = cls(
            id=ids.new("ntfn"),
            workspace_id=channel.workspace_id,
            session_id="",
            approval_id=subject_id,
            channel_id=channel.id,
            stage=stage,
            seq=0,
            due_at=now,
            hinted_at=now,
            created_at=now,
        )
        db.insert(row)
        outbox(db).hints.append(cls.hint_of(row.id, row.workspace_id))
        return row

    @classmethod
    def last_tests(cls, db: Db, channel_ids: list[str]) -> "dict[str, Notification]":
        """Return each channel's last test, by the channel's id. Channels without a test are missing."""
        rows = db.find(cls, "WHERE channel_id = ANY(%(ids)s) AND stage = 'test' ORDER BY created_at, id", ids=channel_ids)
        return {row.channel_id: row for row in rows}

    @staticmethod
    def hint_of(notification_id: str, workspace_id: str) -> Hint:
        """Return the queue message that says that a notification may be ready."""
        return Hint("deliver.notify", (notification_id, workspace_id))

    @classmethod
    def due(cls, db: Db, notification_id: str) -> "DueNotification | None":
        """Return the notification, locked. None if it is not queued or not due."""
        row = db.first(cls, "WHERE id = %(id)s AND status = 'queued' FOR NO KEY UPDATE SKIP LOCKED", id=notification_id)
        if row is None:
            return None
        channel, now = Channel.find(db, row.channel_id), clock.now(db)
        return DueNotification(row, channel, now) if row.due_at <= now else None

    def follow(self, db: Db, stage: str, seq: int, due_at: datetime, now: datetime) -> bool:
        """Have the message tell a later stage. Returns True if the message waits for a worker now. Ignores an earlier stage."""
        if seq <= self.seq:
            return False
        self.stage, self.seq = stage, seq
        if self.status == "running":
            self.attempt = 0
            return False  # the worker queues the message again when it finishes
        self.queue_again(db, due_at, now)
        return True

    @classmethod
    def hurry(cls, db: Db, approval_id: str) -> None:
        """Make messages that still show a pending approval due now, even if earlier edits failed."""
        now = clock.now(db)
        for row in cls.of_approval(db, approval_id):
            if row.receipt is None or row.sent_stage == "decided" or row.status == "running":
                continue
            row.queue_again(db, now, now)
            outbox(db).hints.append(cls.hint_of(row.id, row.workspace_id))

    def queue_again(self, db: Db, due_at: datetime, now: datetime) -> None:
        """Queue the message with all attempts again, also if it is queued. The row is locked and not running."""
        if self.status == "queued":
            self.attempt, self.due_at, self.hinted_at, self.ended_at = 0, due_at, now, None
        else:
            self.requeue(db, due_at, hinted_at=now, attempt=0, ended_at=None)

    def cancel(self, db: Db, now: datetime) -> None:
        """End the notification without sending its current stage."""
        self.end_lease(db, "cancelled", ended_at=now)

    def claim(self, db: Db, now: datetime, task: str | None = None) -> None:
        """Take the lease. `task`: the worker's task, for Flower."""
        self.take_lease(db, now + LEASE, task)

    def succeed(self, db: Db, stage: str, seq: int, receipt: Receipt) -> None:
        """Record that the message of this stage was sent. A later stage that came meanwhile is due at once."""
        now = clock.now(db)
        after: dict[str, Any] = {"sent_stage": stage, "receipt": receipt, "error": ""}
        channel = Channel.find(db, self.channel_id, lock=True)
        channel.sent_at, channel.error = now, ""
        if self.seq > seq:
            self.requeue(db, now, attempt=0, **after)
        else:
            self.end_lease(db, "done", ended_at=now, **after)

    def fail(self, db: Db, error: str, *, retry_after: float | None = None) -> None:
        """Record a failed attempt: due again after a pause, or failed after the last attempt."""
        now = clock.now(db)
        channel = Channel.find(db, self.channel_id, lock=True)
        channel.error = error[:300]
        if self.attempt >= ATTEMPTS or self.stage == "test":
            self.end_lease(db, "failed", error=error[:300], ended_at=now)
            return
        pause = timedelta(seconds=backoff(self.attempt, FIRST_PAUSE, LONGEST_PAUSE, retry_after))
        self.requeue(db, now + pause, error=error[:300])

    def refuse(self, db: Db, reason: str) -> None:
        """Fail the notification because the channel's address no longer exists, and disable the channel."""
        self.end_lease(db, "failed", error=reason[:300], ended_at=clock.now(db))
        Channel.find(db, self.channel_id, lock=True).disable(db, system("deliver.notify", self.workspace_id), reason)

    @classmethod
    def give_up(cls, db: Db, notification_id: str, why: str) -> None:
        """Fail a notification that no worker can claim, or that cannot be taken back. A later stage queues it again."""
        row = db.get(cls, notification_id, lock=True)
        now = clock.now(db)
        if row is not None and row.is_unheld(now):
            row.end_lease(db, "failed", error=f"It could not be begun: {why}."[:300], ended_at=now)

    def lose(self, db: Db) -> None:
        """Queue a notification whose worker died. The attempt counts."""
        now = clock.now(db)
        if self.is_lapsed(now):
            self.fail(db, "The worker died.")


class DueNotification(NamedTuple):
    """A notification to send at `now`, and its channel."""

    notification: Notification
    channel: Channel
    now: datetime
