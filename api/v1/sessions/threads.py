"""Routes of a session's threads."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from flask import Blueprint, Response
from pydantic import Field, SerializeAsAny

from api.door import auth, parsing
from api.door.paging import Order, Selection, page
from api.door.requests import NoQuery, Nothing, Paged
from api.door.responses import Page, ResponseModel, SessionId, ThreadId, Time
from api.door.routes import EVENT_STREAM, Door, opens, reads, writes
from api.v1.agents.responses import InlineAgent, ThreadAgent
from api.v1.approvals import visible
from api.v1.events import routes as events
from api.v1.events.requests import EventList, EventStream
from api.v1.events.responses import EventPage, StreamFrame
from api.v1.sessions.responses import STATUSES
from api.v1.spending.amounts import ActiveUsage, ThreadStats
from models.audit.principal import Principal
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import NotFound
from models.flow.begin import sessions
from models.flow.lock import lock
from models.session.row import Session
from models.session.thread import row

threads = Blueprint("threads", __name__, url_prefix="/v1/sessions/<session_id>/threads")

OLDEST: Order[row.Thread] = Order("threads", (row.Thread.created_at, row.Thread.id), descending=False)
"""A session's own thread is its oldest."""


class ThreadList(Paged):
    """GET /v1/sessions/{id}/threads."""

    limit: int = Field(1000, ge=1, le=1000)
    statuses: list[Literal["running", "idle", "rescheduling", "terminated"]] = Field(default_factory=list)


class Thread(ResponseModel):
    """A thread of a session: a conversation of one agent."""

    id: ThreadId
    type: Literal["session_thread"]
    session_id: SessionId
    parent_thread_id: ThreadId | None = Field(examples=[None])
    """Null for the session's own thread."""
    agent: SerializeAsAny[Annotated[ThreadAgent | InlineAgent, Field(discriminator="type")]]
    """Its roster, if it has one, is that of the session's agent."""
    status: Literal["idle", "running", "rescheduling", "terminated"]
    stats: ThreadStats
    usage: ActiveUsage
    created_at: Time
    updated_at: Time
    archived_at: Time | None

    @classmethod
    def of(cls, db: Db, session: Session, thread: row.Thread) -> Self:
        """Return a thread."""
        return cls.from_row(
            thread,
            parent_thread_id=thread.parent_id,
            agent=_agent(session.agent_of(db, thread)),
            status=STATUSES[thread.status],
            stats=ThreadStats.of(db, session, thread, startup_seconds=0.0),
            usage=ActiveUsage.of(db, session, thread),
        )


def _agent(body: dict[str, Any]) -> ThreadAgent | InlineAgent:
    """Return the agent of a thread, which the SDK shows without its roster."""
    kind = InlineAgent if body["type"] == "inline" else ThreadAgent
    return kind.stored(**{name: value for name, value in body.items() if name != "multiagent"})


class ThreadPage(Page[Thread]):
    """The session's threads."""


@threads.get("")
@reads(ThreadList, "read or own", response=ThreadPage)
def index(db: Db, principal: Principal, query: ThreadList, session_id: str) -> ThreadPage:
    """List a session's threads, its own first."""
    session = visible.find_session(db, principal, session_id)
    selection = Selection(row.Thread).equal(session_id=session_id)
    if query.statuses:
        statuses = [own for own, shown in STATUSES.items() if shown in query.statuses]
        selection = selection.where("status = ANY(%(statuses)s)", statuses=statuses)
    rows, after = page(db, selection, OLDEST, query.limit, query.page)
    return ThreadPage(data=[Thread.of(db, session, each) for each in rows], next_page=after)


@threads.get("/<thread_id>")
@reads(NoQuery, "read or own", response=Thread)
def show(db: Db, principal: Principal, _query: NoQuery, session_id: str, thread_id: str) -> Thread:
    """Get a thread of a session."""
    return Thread.of(db, *_find(db, principal, session_id, thread_id))


@threads.post("/<thread_id>/archive")
@writes(Nothing, "sessions", once=True, response=Thread)
def archive(db: Db, principal: Principal, _body: Nothing, session_id: str, thread_id: str) -> Thread:
    """Archive a thread.

    The session's own thread is archived with its session.
    """
    locked = lock(db, session_id, principal)
    thread = db.get(row.Thread, session_id, thread_id)
    if thread is None:
        raise NotFound("thread", thread_id)
    sessions.archive_thread(locked.on(thread))
    return Thread.of(db, locked.session, thread)


@threads.get("/<thread_id>/events")
@reads(EventList, "read or own", response=EventPage, writes_if="reveal")
def listed(db: Db, principal: Principal, query: EventList, session_id: str, thread_id: str) -> Callable[[], EventPage]:
    """List a thread's events in order."""
    _find(db, principal, session_id, thread_id)
    return events.listed(db, principal, query, session_id, thread_id)


@threads.get("/<thread_id>/stream")
@opens(Door(StreamFrame, EventStream, scopes=("read or own",), media_type=EVENT_STREAM, headers=("Last-Event-ID",)))
def stream(session_id: str, thread_id: str) -> Response:
    """Stream a thread's events as server-sent events.

    The stream begins after `Last-Event-ID`. Without this header it begins after the events that this key has just sent, or now.
    """
    principal = auth.authenticate("read or own")
    parsing.check_ids({"session_id": session_id, "thread_id": thread_id})
    with transaction(principal.workspace_id) as db:
        _find(db, principal, session_id, thread_id)
    return events.opened(principal, session_id, thread_id)


def _find(db: Db, principal: Principal, session_id: str, thread_id: str) -> tuple[Session, row.Thread]:
    """Return a thread with its session. Raises NotFound."""
    session = visible.find_session(db, principal, session_id)
    thread = db.get(row.Thread, session_id, thread_id)
    if thread is None:
        raise NotFound("thread", thread_id)
    return session, thread
