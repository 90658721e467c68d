"""Turns: one model call in one task, which ends with one checkpoint, the turn's row in `reply`.

A request to the model consists of the messages that each turn read, its reply, and the results of its calls, in order. These rows
do not change as the conversation grows.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database import ids
from models.database.columns import Mapped, mapped_column
from models.database.leased import Leased
from models.database.query import Query, select
from models.database.tables import Base
from models.database.transactions import Hint
from models.pure.backoff import backoff
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.event.row import Event
from models.session.hints import QUEUED, hint_of, hint_queued
from models.session.locked import Locked
from models.session.spending import sums as spend_sums
from models.session.turn.events import ModelAt, ModelFallback, RequestEnd, RequestStart, Tokens
from models.session.turn.reply import Reply
from models.settings import settings


@dataclass(frozen=True)
class Skip:
    """An alternative that was not tried, named by provider and model."""

    place: tuple[str, str]
    message: str


@dataclass(frozen=True)
class Switch:
    """The switch of a turn to another model, because a model failed. Models are named by provider and model."""

    source: tuple[str, str]
    target: tuple[str, str]
    reason: str
    """The kind of the error, or `circuit_open`."""
    message: str
    skipped: tuple[Skip, ...] = ()
    """The alternatives between the two models."""

    @property
    def event(self) -> ModelFallback:
        """The event."""
        return {
            "type": "model.fallback",
            "from": _named(self.source),
            "to": _named(self.target),
            "reason": self.reason,
            "message": self.message,
            "skipped": [{**_named(skip.place), "message": skip.message} for skip in self.skipped],
        }

    @property
    def details(self) -> dict[str, Any]:
        """The details of the act in the audit."""
        skipped = {"skipped": [{"model": "/".join(skip.place), "why": skip.message} for skip in self.skipped]}
        places = {"source": "/".join(self.source), "target": "/".join(self.target)}
        return {"reason": self.reason, **places, **(skipped if self.skipped else {})}


def _named(place: tuple[str, str]) -> ModelAt:
    provider, model = place
    return {"provider": provider, "model": model}


@dataclass(frozen=True)
class Served:
    """The model that replies in a turn, and the switches that led to it."""

    provider: str
    model: str
    switches: tuple[Switch, ...] = ()


class Turn(Leased, Base):
    """One model call. The states are in `models.pure.states.TURN`."""

    __tablename__ = "turn"
    TASK = "turn.run"
    """The task that works on a turn. Acts of workers have it as their actor."""

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    thread_id: Mapped[str]
    number: Mapped[int]
    """From 1 within the thread."""
    count: Mapped[int]
    """From 1 within the run: the turns since the user's message."""
    status: Mapped[str] = mapped_column(default="queued")
    fence: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    losses: Mapped[int] = mapped_column(default=0)
    """Attempts whose worker died."""
    folds: Mapped[int] = mapped_column(default=0, server_default="0")
    """Attempts that requested a summary of older turns instead of a reply."""
    overlong_after: Mapped[int | None]
    """The number of `folds` when the model refused the turn's request as too long. None: the model did not."""
    lease_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    worker: Mapped[str | None]
    task: Mapped[str | None]
    due_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    hinted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    provider: Mapped[str | None]
    """The provider that replied, or began to. The turn stays with it."""
    model: Mapped[str | None]
    """The model that replied, or began to, by the agent's name for it."""
    stop_reason: Mapped[str | None]
    quote: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The highest charge that the present attempt may cause (`Charge.stored`), and `person`, who pays, if known.

    Counted if the attempt ends without a report.

    Null once there is a reply: `TurnUsage` then has the charges of each attempt.
    """
    span_id: Mapped[str | None]
    """Id of the event `span.model_request_start` of the present attempt."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    started_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.UniqueConstraint("session_id", "thread_id", "number"),
        sa.Index("turn_queued", "workspace_id", "due_at", postgresql_where=sa.text(QUEUED)),
        # Without the lease: else each renewal would write all indexes of the row anew.
        sa.Index("turn_running", "workspace_id", postgresql_where=sa.text("status = 'running'")),
    )

    @classmethod
    def by_id(cls, turn_id: str) -> "Query[Turn]":
        """Return the query of a turn, to read it together with other rows."""
        return select(cls, "WHERE id = %(id)s", id=turn_id)

    @classmethod
    def queue(cls, locked: Locked, count: int) -> "Turn":
        """Insert and return the session's next turn, queued. It becomes the session's current turn."""
        thread = locked.thread
        thread.turn_number += 1
        thread.turn_count = count
        turn = cls(
            id=ids.new("turn"),
            workspace_id=thread.workspace_id,
            session_id=thread.session_id,
            thread_id=thread.id,
            number=thread.turn_number,
            count=count,
            due_at=locked.now,
            hinted_at=locked.now,
            created_at=locked.now,
        )
        thread.turn_id, thread.updated_at = turn.id, locked.now
        locked.changes.calls[thread.id] = []
        locked.db.insert(turn)
        hint_queued(locked.db, turn.hint(thread.agent_id))
        return turn

    def hint(self, agent_id: str) -> Hint:
        """Return the queue message that says this turn of an agent may be ready."""
        return hint_of(self.TASK, (self.id, self.session_id, self.workspace_id, agent_id))

    def claim(self, locked: Locked, worker: str, quote: Charge, task: str | None) -> None:
        """Take the lease. `quote` is the highest charge that the attempt may cause."""
        person = locked.session.spender
        self.take_lease(
            locked.db,
            locked.now + timedelta(seconds=settings().lease_seconds),
            task,
            worker=worker,
            started_at=locked.now,
            quote=quote.as_json | ({"person": person} if person else {}),
            span_id=locked.emit(RequestStart(type="span.model_request_start")).id,
        )

    @staticmethod
    def read_queue(locked: Locked, turn_id: str | None) -> None:
        """Have this turn read the queued messages; None: no turn reads them."""
        thread = locked.thread
        if thread.unread:
            locked.write()  # the update that follows must find messages of this very transaction
            Event.process_queue(locked.db, thread, locked.now, turn_id)
        thread.unread = 0

    def end_span(self, locked: Locked, usage: Usage, *, is_error: bool) -> None:
        """Emit the event that closes the attempt's model request."""
        tokens = Tokens(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_input_tokens=usage.cache_read_input_tokens,
            cache_creation_input_tokens=usage.cache_creation_input_tokens,
        )
        request = self.span_id or ""
        locked.emit(
            RequestEnd(type="span.model_request_end", model_request_start_id=request, model_usage=tokens, is_error=is_error)
        )

    @property
    def kept(self) -> tuple[str, str] | None:
        """The provider and model that began to reply in an earlier attempt, or None."""
        return (self.provider, self.model) if self.provider and self.model else None

    def serve(self, locked: Locked, served: Served) -> None:
        """Record the model that replies, with an event and an act for each switch."""
        self.provider, self.model = served.provider, served.model
        self.note_switches(locked, served)

    def note_switches(self, locked: Locked, served: Served) -> None:
        """Emit an event and record an act for each switch to another model."""
        for switch in served.switches:
            locked.emit(switch.event)
            locked.note("turn.fell_back", self.id, **switch.details)

    def checkpoint(self, locked: Locked, reply: list[dict[str, Any]], stop_reason: str) -> None:
        """Store the reply. The turn is done."""
        self._leave(locked, "done", stop_reason=stop_reason, quote=None, ended_at=locked.now)
        locked.db.insert(Reply(turn_id=self.id, workspace_id=self.workspace_id, content=reply))

    def retry(self, locked: Locked, *, retry_after: float | None) -> None:
        """Queue the turn again after a model's passing error, due after a pause. A sweep sends the hint then."""
        s = settings()
        wait = backoff(self.attempt, s.backoff_seconds, s.backoff_max_seconds, retry_after)
        self._leave(locked, "queued", due_at=locked.now + timedelta(seconds=wait), hinted_at=None)

    @property
    def is_overlong(self) -> bool:
        """True if older turns must be folded first, whatever the estimate says, because the model refused the last request."""
        return self.overlong_after == self.folds

    def lose(self, locked: Locked) -> None:
        """Queue the turn again, because its worker died."""
        self._requeue(locked, losses=self.losses + 1)

    def shorten(self, locked: Locked) -> None:
        """Queue the turn again, because the model refused the request as too long. Happens once."""
        self._requeue(locked, overlong_after=self.folds)

    def fold(self, locked: Locked) -> None:
        """Queue the turn again, because the attempt returned a summary of older turns."""
        self._requeue(locked, folds=self.folds + 1)

    def _requeue(self, locked: Locked, **changes: int) -> None:
        self._leave(locked, "queued", due_at=locked.now, hinted_at=locked.now, **changes)
        hint_queued(locked.db, self.hint(locked.thread.agent_id))

    def fail(self, locked: Locked, stop_reason: str | None = None) -> None:
        """End the turn without a reply."""
        self._leave(locked, "failed", stop_reason=stop_reason, ended_at=locked.now)

    def cancel(self, locked: Locked) -> None:
        """End the turn before its checkpoint. The fence rises, so a reply in flight is discarded.

        An unclaimed turn counts as having read its messages, because they belong to the run that was ended.
        """
        if self.status == "queued":
            self.read_queue(locked, self.id)
        self._leave(locked, "cancelled", fence=self.fence + 1, ended_at=locked.now)

    def _leave(self, locked: Locked, status: str, **changes: Any) -> None:
        """Move to a status without a lease. If an attempt was under way, spend limits no longer reserve its cost."""
        if self.status == "running" and self.quote:
            spend_sums.release(locked.db, locked.thread.agent_id, self.quote, locked.now)
        self.end_lease(locked.db, status, **changes)
