"""Responses about the work of self-hosted environments."""

from typing import Literal, Self

from pydantic import Field, RootModel

from api.door.examples import TIME
from api.door.responses import EnvironmentId, Metadata, Page, ResponseModel, SessionId, Time, WorkId
from models.pure.times import rfc3339
from models.session import work

State = Literal["queued", "starting", "active", "stopping", "stopped"]


class WorkData(ResponseModel):
    """The session whose tools the worker runs."""

    type: Literal["session"]
    id: SessionId


class Work(ResponseModel):
    """A piece of work: a session whose tools a worker runs."""

    id: WorkId
    type: Literal["work"]
    environment_id: EnvironmentId
    data: WorkData
    state: State
    metadata: Metadata
    secret: None
    created_at: Time
    acknowledged_at: Time | None
    started_at: Time | None
    latest_heartbeat_at: Time | None
    stop_requested_at: Time | None
    stopped_at: Time | None

    @classmethod
    def of(cls, row: work.Work) -> Self:
        """Return a piece of work."""
        return cls.from_row(
            row,
            data=WorkData(type="session", id=row.session_id),
            state=row.status,
            metadata=row.metadata_,
            latest_heartbeat_at=row.heartbeat_at,
        )


class Polled(RootModel[Work | None]):
    """The work that the caller now holds, or null."""


class WorkPage(Page[Work]):
    """Work, newest first."""


class WorkStats(ResponseModel):
    """How much work waits. `depth` counts queued work; `pending` counts work that was offered and is not acknowledged."""

    type: Literal["work_queue_stats"]
    depth: int
    pending: int
    oldest_queued_at: Time | None


class Lease(ResponseModel):
    """A lease after a heartbeat."""

    type: Literal["work_heartbeat"]
    last_heartbeat: str = Field(examples=[TIME])
    """The time of the last heartbeat. Empty if there has been none."""
    lease_extended: bool = Field(examples=[True])
    state: State = Field(examples=["active"])
    ttl_seconds: int = Field(examples=[60])

    @classmethod
    def of(cls, row: work.Work, ttl_seconds: int, *, extended: bool) -> Self:
        """Return the lease of a piece of work. `extended` is False if the heartbeat did not extend the lease."""
        last = rfc3339(row.heartbeat_at) if row.heartbeat_at else ""
        values = {"last_heartbeat": last, "lease_extended": extended, "state": row.status, "ttl_seconds": ttl_seconds}
        return cls.from_row(row, **values)
