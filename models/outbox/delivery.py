"""Deliveries: one event for one endpoint, inserted in the transaction that caused the event, and sent at least once.

All attempts carry the same `webhook-id`, so that the receiver can deduplicate.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.audit.principal import system
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.exchange import Rows, Statement
from models.database.leased import Leased
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.errors import Invalid, NotFound
from models.outbox.endpoint import AT_ONCE, Endpoint
from models.outbox.webhook_events import OWN_EVENTS, THREAD_EVENTS
from models.pure.backoff import jitter
from models.pure.json.codec import encode
from models.pure.times import rfc3339

PAUSES = tuple(
    timedelta(**pause)
    for pause in ({"seconds": 5}, {"minutes": 5}, {"minutes": 30}, *({"hours": h} for h in (2, 5, 10, 14, 20, 24)))
)
"""Pauses before the second to the tenth attempt, over three days. Each gets a tenth of jitter."""
LEASE = timedelta(seconds=90)
"""Longer than an attempt can take, so nothing renews it."""
SUSTAINED = timedelta(days=3)
"""An endpoint that fails for this long without a 2xx is disabled."""
TEST_SUBJECT = "sesn_00000000000000000000000000"
TEST_THREAD = "sthr_00000000000000000000000000"
"""The ids of a session and a thread that do not exist, for test deliveries."""


class Caused(NamedTuple):
    """An event that a transaction causes."""

    type: str
    """One of `models.outbox.webhook_events.EVENTS`."""
    subject_id: str
    session_id: str | None = None


class Delivery(Leased, Base):
    """One event for one endpoint. The states are in `models.pure.states.DELIVERY`."""

    __tablename__ = "delivery"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    endpoint_id: Mapped[str]
    """No foreign key: a sweep removes the deliveries of a deleted endpoint."""
    event_id: Mapped[str]
    """The header `webhook-id`: the same for all endpoints and attempts."""
    event_type: Mapped[str]
    subject_id: Mapped[str]
    """The session, thread, agent, environment or approval that the event is about."""
    session_id: Mapped[str | None]
    """The session of an approval or a thread, if the event is about one."""
    status: Mapped[str] = mapped_column(default="queued")
    fence: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[list[dict[str, Any]]] = mapped_column(JSONB(none_as_null=True))
    """One entry per ended attempt: `{"at": time, "status": int | null, "error": str | null, "seconds": float}`."""
    lease_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    task: Mapped[str | None]
    due_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    hinted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("delivery_of_endpoint", "endpoint_id", "id"),
        sa.Index("delivery_waiting", "endpoint_id", "due_at", "id", postgresql_where=sa.text("status = 'queued'")),
        sa.Index("delivery_ended", "ended_at", postgresql_where=sa.text("ended_at IS NOT NULL")),
        sa.Index("delivery_running", "endpoint_id", "lease_until", postgresql_where=sa.text("status = 'running'")),
    )

    @staticmethod
    def cause(db: Db, *events: Caused) -> None:
        """Queue events for every enabled endpoint of the workspace that names their types. Hints leave after the commit.

        Each endpoint gets at most `AT_ONCE` hints: their workers continue with the other deliveries. A failing endpoint gets no
        hint: the dispatch sweep sends one.
        """
        if not events:
            return
        rows = [{"id": ids.new("whev"), **event._asdict()} for event in events]

        def hint(inserted: Rows) -> None:
            outbox(db).hints += [_hint(delivery_id, db.workspace_id) for delivery_id, hinted_at in inserted if hinted_at]

        db.queue(Statement(_CAUSE, {"events": encode(rows), "most": AT_ONCE}, hint))

    @classmethod
    def test(cls, db: Db, endpoint: Endpoint, event_type: str) -> "Delivery":
        """Queue a test event for this endpoint and return the delivery. Raises Conflict if the endpoint is disabled."""
        endpoint.get_ready()
        now = clock.now(db)
        row = cls(
            id=ids.new("whdl"),
            workspace_id=endpoint.workspace_id,
            endpoint_id=endpoint.id,
            event_id=ids.new("whev"),
            event_type=event_type,
            subject_id=TEST_THREAD if event_type in THREAD_EVENTS else TEST_SUBJECT,
            session_id=TEST_SUBJECT if event_type in OWN_EVENTS + THREAD_EVENTS else None,
            attempts=[],
            due_at=now,
            hinted_at=now,
            created_at=now,
        )
        db.insert(row)
        outbox(db).hints.append(row.hint)
        return row

    @classmethod
    def of(cls, db: Db, endpoint_id: str, delivery_id: str, *, lock: bool = False) -> "Delivery":
        """Return a delivery of this endpoint. Raises NotFound."""
        row = db.get(cls, delivery_id, lock=lock)
        if row is None or row.endpoint_id != endpoint_id:
            raise NotFound("delivery", delivery_id)
        return row

    @property
    def hint(self) -> Hint:
        """The queue message that says that this delivery may be ready."""
        return _hint(self.id, self.workspace_id)

    def finish(self, db: Db, *, status: int | None, error: str | None, seconds: float) -> None:
        """Record the result of an attempt: done after a 2xx, else due again later, or failed after the last attempt.

        A 410 disables the endpoint at once. Failures without a 2xx for `SUSTAINED` disable the endpoint too.
        """
        now = clock.now(db)
        self._record(db, now, status, error, seconds)
        if error is None and Endpoint.find(db, self.endpoint_id).responded_just_now(now):
            return  # nothing to write: locking the endpoint would make its workers wait for each other
        endpoint = Endpoint.find(db, self.endpoint_id, lock=True)
        by = system("deliver.send", self.workspace_id)
        if error is None:
            endpoint.succeed(now, seconds)
            return
        endpoint.fail(now)
        if status == 410:
            endpoint.disable(db, by, "It responded with 410 Gone.")
        elif endpoint.failing_since and now - endpoint.failing_since >= SUSTAINED:
            endpoint.disable(db, by, f"No delivery succeeded for three days; the last attempt: {error}")

    def lose(self, db: Db) -> None:
        """Queue a delivery whose worker died. The attempt counts for the delivery, but not as the endpoint's failure."""
        now = clock.now(db)
        if self.is_lapsed(now):
            self._record(db, now, None, "The worker died.", LEASE.total_seconds())

    @classmethod
    def give_up(cls, db: Db, delivery_id: str, why: str) -> None:
        """Fail a delivery that no worker can claim, or that cannot be taken back. A person can have it sent again."""
        row = db.get(cls, delivery_id, lock=True)
        now = clock.now(db)
        if row is not None and row.is_unheld(now):
            attempt = {"at": rfc3339(now), "status": None, "error": f"It could not be begun: {why}.", "seconds": 0}
            row.end_lease(db, "failed", attempts=[*row.attempts, attempt], ended_at=now)

    def _record(self, db: Db, now: datetime, status: int | None, error: str | None, seconds: float) -> None:
        attempt = {"at": rfc3339(now), "status": status, "error": error, "seconds": round(seconds, 3)}
        attempts = [*self.attempts, attempt]
        if error is None:
            self.end_lease(db, "done", attempts=attempts, ended_at=now)
        elif status == 410 or self.attempt > len(PAUSES):
            self.end_lease(db, "failed", attempts=attempts, ended_at=now)
        else:
            self.requeue(db, now + jitter(PAUSES[self.attempt - 1]), attempts=attempts)

    def send_again(self, db: Db, *, has_hint: bool = True) -> None:
        """Queue an ended delivery under the same `webhook-id`, with all its attempts again. Raises Invalid for one that waits.

        The caller calls `Endpoint.get_ready` first. Without a hint, a worker sends it after the endpoint's other deliveries.
        """
        if self.status in {"queued", "running"}:
            raise Invalid("delivery_id", f"this delivery is {self.status}: it will be sent anyway.")
        now = clock.now(db)
        self.requeue(db, now, hinted_at=now if has_hint else None, attempt=0, ended_at=None)
        outbox(db).hints += [self.hint] * has_hint

    def payload(self, organization_id: str) -> str:
        """Return the request's body, for the SDK's `client.beta.webhooks.unwrap`. All attempts send the same body."""
        about = {"id": self.subject_id}
        if self.session_id and self.event_type in THREAD_EVENTS:
            about = {"id": self.session_id, "session_thread_id": self.subject_id}
        elif self.session_id:
            about["session_id"] = self.session_id
        data = {"type": self.event_type, **about, "organization_id": organization_id, "workspace_id": self.workspace_id}
        created_at = rfc3339(self.created_at)
        return encode({"type": "event", "id": self.event_id, "created_at": created_at, "data": data})


def _hint(delivery_id: str, workspace_id: str) -> Hint:
    return Hint("deliver.send", (delivery_id, workspace_id))


_CAUSE = """
    INSERT INTO delivery (
        id, workspace_id, endpoint_id, event_id, event_type, subject_id, session_id,
        status, fence, attempt, attempts, due_at, hinted_at, created_at
    )
    SELECT 'whdl_' || substr(caused.id, 6, 10) || upper(encode(substring(uuid_send(gen_random_uuid()) FOR 8), 'hex')),
        endpoint.workspace_id, endpoint.id, caused.id, caused.type, caused.subject_id, caused.session_id,
        'queued', 0, 0, '[]', now, CASE WHEN endpoint.failing_since IS NULL AND waiting.count < %(most)s
            AND row_number() OVER (PARTITION BY endpoint.id) <= %(most)s THEN now END, now
    FROM jsonb_to_recordset(CAST(%(events)s AS jsonb)) AS caused (id text, type text, subject_id text, session_id text)
    JOIN endpoint ON endpoint.workspace_id = current_setting('assent.workspace') AND endpoint.state = 'enabled'
        AND caused.type = ANY (endpoint.enabled_events),
    LATERAL (SELECT assent_now() AS now) AS clock,
    LATERAL (SELECT COUNT(*) FROM (
        SELECT FROM delivery WHERE endpoint_id = endpoint.id AND status = 'queued' AND due_at <= clock.now LIMIT %(most)s
    ) AS first) AS waiting
    RETURNING id, hinted_at
"""
"""A delivery's id begins with the event's time, like a ULID, and ends with 64 random bits."""
