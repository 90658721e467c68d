"""Responses about sessions."""

from typing import Literal, Self

from pydantic import Field, SerializeAsAny

from api.door.responses import Empty, EnvironmentId, Metadata, Page, ResponseModel, SessionId, Time
from api.v1.agents.responses import SessionAgent
from api.v1.sessions.waiting import Waiting
from api.v1.spending.amounts import ActiveUsage, Budget, Stats
from models.database.rows import Db
from models.session import row as session
from models.session.event.of_session import StopReason
from models.session.thread.held_work import HeldWork

STATUSES = {
    "idle": "idle",
    "running": "running",
    "waiting": "idle",
    "rescheduling": "rescheduling",
    "stopping": "running",
    "terminated": "terminated",
}
"""The API's status for each status of a session. A waiting session is idle, with the stop reason `requires_action`."""
WAITING = {"approval": ("person", "both"), "client": ("client", "both"), "any": ("person", "client", "both"), "none": ("none",)}
"""The values of `Session.waits_for` for each value of the query `waiting`."""
State = Literal["active", "waiting_approval", "completed", "error"]


class Session(ResponseModel):
    """A durable conversation with one agent."""

    id: SessionId
    type: Literal["session"]
    agent: SessionAgent
    environment_id: EnvironmentId
    status: Literal["idle", "running", "rescheduling", "terminated"]
    state: State
    """`waiting_approval`: a call waits for people. `active`: the session has not run yet, runs, or waits for a client or a worker.
    `completed`: the last run ended with `end_turn`, or none ran before the session was archived. `error`: the last run ended early,
    for the reason in `stop_reason`."""
    stopping: bool = Field(examples=[False])
    """Whether the run was stopped, and ends once the calls that run have ended."""
    halted: bool = Field(examples=[False])
    """Whether the session would go on, but a halt of the workspace holds it: nothing of it runs, and no worker takes its work."""
    stop_reason: SerializeAsAny[StopReason | None]
    waiting_on: list[Waiting] = Field(examples=[[]])
    """The calls that wait for somebody, oldest first within each kind: first for people, then for the client or its worker."""
    title: str | None = Field(examples=["Order 1042"])
    metadata: Metadata
    max_turns: int
    chat_approvals: bool
    on_ask: Literal["inbox", "deny"] = Field(examples=["inbox"])
    on_behalf_of: str | None = Field(examples=[None])
    """The person for whom the session was created, such as `user:user_...`."""
    budget: Budget | None
    outcome_evaluations: Empty
    resources: Empty
    stats: Stats
    usage: ActiveUsage
    vault_ids: Empty
    created_at: Time
    updated_at: Time
    archived_at: Time | None

    @classmethod
    def of(cls, db: Db, row: session.Session, waiting_on: list[Waiting], held_work: HeldWork) -> Self:
        """Return a session with the calls that wait for somebody. `held_work`: what a halt holds of it."""
        return cls.from_row(
            row,
            agent=SessionAgent.of(db, row),
            status=STATUSES[row.status],
            state=_state(row),
            stopping=row.status == "stopping",
            halted=row.id in held_work.sessions,
            waiting_on=waiting_on,
            metadata=row.metadata_,
            on_behalf_of=f"user:{row.on_behalf_of}" if row.on_behalf_of else None,
            budget=Budget.of(row.budget),
            stats=Stats.of(db, row, row),
            usage=ActiveUsage.of(db, row, row),
        )


def _state(row: session.Session) -> State:
    if row.waits_for in WAITING["approval"]:
        return "waiting_approval"
    if row.status not in {"idle", "terminated"} or (row.status == "idle" and row.stop_reason is None):
        return "active"
    return "completed" if not row.stop_reason or row.stop_reason["type"] == "end_turn" else "error"


class SessionPage(Page[Session]):
    """Sessions. Send `prev_page` as `page` to get the previous page."""

    prev_page: str | None


class SessionDeleted(ResponseModel):
    """The session and its history are deleted."""

    id: SessionId
    type: Literal["session_deleted"]


class SessionErased(ResponseModel):
    """The session, its history and the texts of its audit are erased."""

    id: SessionId
    type: Literal["session_erased"]


class NoResources(ResponseModel):
    """An empty list, since this server mounts no resources."""

    data: Empty
    next_page: None
