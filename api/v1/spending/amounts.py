"""The consumption of sessions and turns, and its cost."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from api.door.responses import ResponseModel
from models.database import clock
from models.database.rows import Db
from models.session.locked import Locked
from models.session.row import Session
from models.session.thread.row import Thread


class Amount(ResponseModel):
    """An amount of money, rounded to whole cents."""

    amount: str = Field(examples=["421"])
    """Cents, as an integer in a string: `421` is $4.21."""
    currency: Literal["USD"]


class Budget(ResponseModel):
    """The most that a session may cost at list prices."""

    type: Literal["limit"]
    max_list_cost: Amount

    @classmethod
    def of(cls, budget: dict[str, Any] | None) -> Self | None:
        """Return a budget that is stored in the API's form."""
        return cls.model_validate(budget) if budget else None


class CacheCreation(ResponseModel):
    """Tokens written to the model's cache, by the cache's lifetime."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class ServerToolUse(ResponseModel):
    """Calls of tools that the provider ran itself."""

    web_search_requests: int
    web_fetch_requests: int


class Usage(ResponseModel):
    """Consumption, and its cost at list prices or at the prices that the operator configured.

    Costs are null if no price is known. If `unpriced_requests` is above 0, the costs leave those requests out.
    """

    input_tokens: int
    """Tokens that were neither read from the cache nor written to it."""
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    cache_creation: CacheCreation
    server_tool_use: ServerToolUse
    list_cost: Amount | None
    cache_savings: Amount | None
    """The difference to the cost of the input without a cache. Negative if writing to the cache cost more than reading saved."""
    exact_list_cost: str | None = Field(examples=["4.2137"])
    """The cost in US dollars, not rounded."""
    exact_cache_savings: str | None = Field(examples=["1.08"])
    requests: int
    """Requests to models, including those of failed attempts."""
    estimated_requests: int
    """Requests with an estimated usage, since the provider did not report the usage."""
    unpriced_requests: int
    """Requests without a known price."""


class ActiveUsage(Usage):
    """What a session consumed so far."""

    active_seconds: float = Field(examples=[12.5])
    """The time during which the session was running. Threads that run at the same time count once."""

    @classmethod
    def of(cls, db: Db, row: Session, of: Session | Thread) -> Self:
        """Return what a session, or the thread `of` it, consumed up to now."""
        return cls.model_validate(of.spending(_now(db, row)))


class Stats(ResponseModel):
    """The times of a session."""

    active_seconds: float = Field(examples=[12.5])
    """The time during which its threads were running, each counted by itself."""
    duration_seconds: float = Field(examples=[3600.0])
    """The age of the session; for an archived session, its age when it was archived."""

    @classmethod
    def of(cls, db: Db, row: Session, of: Session | Thread, **more: Any) -> Self:
        """Return the times of a session, or of the thread `of` it, up to now."""
        now = _now(db, row)
        age = ((of.archived_at or now) - of.created_at).total_seconds()
        active = _active_sum(db, row, now) if of is row else of.active_for(now)
        return cls.stored(active_seconds=round(active, 6), duration_seconds=max(age, 0.0), **more)


class ThreadStats(Stats):
    """The times of a thread."""

    startup_seconds: float


def load_active_sums(db: Db, rows: Sequence[Session]) -> None:
    """Read the active times of these sessions' threads at once, for their `Stats`."""
    if shared := [row.id for row in rows if row.threads_begun]:
        db.info[_SUMS] = Thread.active_sums(db, shared, _now(db, rows[0]))


def _active_sum(db: Db, row: Session, now: datetime) -> float:
    """Return the active time of the session's threads together, in seconds. A session with one thread is active as it is."""
    if not row.threads_begun:
        return row.active_for(now)
    sums: dict[str, float] = db.info.get(_SUMS) or {}
    return sums[row.id] if row.id in sums else Thread.active_sums(db, [row.id], now).get(row.id, 0.0)


_SUMS = "active sums"


def _now(db: Db, row: Session) -> datetime:
    """Return the time of the response: the locked session's, else a time that is read once per transaction."""
    if locked := Locked.of(db, row):
        return locked.now
    if "responded at" not in db.info:
        db.info["responded at"] = clock.now(db)
    at: datetime = db.info["responded at"]
    return at
