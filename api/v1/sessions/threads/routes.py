"""Routes of a session's threads. A session has one thread, its own. The thread's events are the session's."""

from collections.abc import Callable

from flask import Blueprint, Response

from api.door import auth, parsing
from api.door.requests import NoQuery, Nothing
from api.door.routes import EVENT_STREAM, Door, opens, reads, writes
from api.v1.approvals import visible
from api.v1.events import routes as events
from api.v1.events.requests import EventList, EventStream
from api.v1.events.responses import EventPage, StreamFrame
from api.v1.sessions.threads import responses
from api.v1.sessions.threads.requests import ThreadList
from models.audit.principal import Principal
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid, NotFound
from models.flow.begin import sessions
from models.flow.lock import lock
from models.session.row import Session

threads = Blueprint("threads", __name__, url_prefix="/v1/sessions/<session_id>/threads")


@threads.get("")
@reads(ThreadList, "read or own", response=responses.ThreadPage)
def index(db: Db, principal: Principal, query: ThreadList, session_id: str) -> responses.ThreadPage:
    """List a session's threads: always one, the session's own."""
    if query.page is not None:
        raise Invalid("page", "this list has one page; leave it out.")
    thread = responses.Thread.of(db, visible.find_session(db, principal, session_id))
    is_listed = not query.statuses or thread.status in query.statuses
    return responses.ThreadPage(data=[thread] if is_listed else [], next_page=None)


@threads.get("/<thread_id>")
@reads(NoQuery, "read or own", response=responses.Thread)
def show(db: Db, principal: Principal, _query: NoQuery, session_id: str, thread_id: str) -> responses.Thread:
    """Get a thread of a session."""
    return responses.Thread.of(db, _find(db, principal, session_id, thread_id))


@threads.post("/<thread_id>/archive")
@writes(Nothing, "sessions", once=True, response=responses.Thread)
def archive(db: Db, principal: Principal, _body: Nothing, session_id: str, thread_id: str) -> responses.Thread:
    """Archive a thread, which archives its session."""
    locked = lock(db, session_id, principal)
    _check(locked.session, thread_id)
    sessions.archive(locked)
    return responses.Thread.of(db, locked.session)


@threads.get("/<thread_id>/events")
@reads(EventList, "read or own", response=EventPage)
def listed(db: Db, principal: Principal, query: EventList, session_id: str, thread_id: str) -> Callable[[], EventPage]:
    """List a thread's events in order."""
    _find(db, principal, session_id, thread_id)
    return events.listed(db, principal, query, session_id)


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
    return events.opened(principal, session_id)


def _find(db: Db, principal: Principal, session_id: str, thread_id: str) -> Session:
    session = visible.find_session(db, principal, session_id)
    _check(session, thread_id)
    return session


def _check(session: Session, thread_id: str) -> None:
    if thread_id != session.thread_id:
        raise NotFound("thread", thread_id)
