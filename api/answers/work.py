"""Work of self-hosted environments as we answer it."""

from typing import Literal

from pydantic import RootModel

from api.answers.base import Answer, Metadata, Page, Time

State = Literal["queued", "starting", "active", "stopping", "stopped"]


class WorkData(Answer):
    """What is to be served: a session."""

    type: Literal["session"]
    id: str


class Work(Answer):
    """A session for a worker to serve."""

    id: str
    type: Literal["work"]
    environment_id: str
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


class Polled(RootModel[Work | None]):
    """Work for who polled, or nothing."""


class WorkPage(Page[Work]):
    """Work, newest first."""


class WorkStats(Answer):
    """How much waits: `depth` is queued, `pending` is offered and not acknowledged."""

    type: Literal["work_queue_stats"]
    depth: int
    pending: int
    oldest_queued_at: Time | None


class Lease(Answer):
    """A lease after a heartbeat. `last_heartbeat` is empty if there has been none."""

    type: Literal["work_heartbeat"]
    last_heartbeat: str
    lease_extended: bool
    state: State
    ttl_seconds: int
