"""Routes of a session's events: send, list, stream."""

from collections.abc import Callable

from flask import Blueprint, Response, request

from api.door import auth, parsing
from api.door.paging import Order, place
from api.door.routes import EVENT_STREAM, Door, opens, reads, writes
from api.streams.hub import hub
from api.streams.reader import Reader
from api.streams.stream import HEADERS, Stream, ended_by
from api.v1.approvals import visible
from api.v1.events import responses, revealing
from api.v1.events.requests import EventList, EventsSend, EventStream, plain
from models.audit.principal import Principal
from models.database.query import select_one
from models.database.rows import Db
from models.database.transactions import transact
from models.errors import Invalid
from models.flow.begin.messages import receive
from models.flow.lock import lock
from models.people.principal import PersonPrincipal
from models.session.event.log import EventFilter, archived_at, events_after, events_before
from models.session.event.row import OF_ASSENT, Event
from models.session.row import Session
from models.session.thread.row import Thread, own_id

events = Blueprint("events", __name__, url_prefix="/v1/sessions/<session_id>/events")

ASCENDING: Order[Event] = Order("events", (Event.seq,), descending=False)


@events.post("")
@writes(EventsSend, also=EventsSend.scopes, response=responses.SentEvents)
def send(db: Db, principal: Principal, body: EventsSend, session_id: str) -> responses.SentEvents:
    """Send events to a session: messages, decisions, tool results or an interrupt.

    All of the events are stored, or none. Messages and interrupts need the scope `sessions`, decisions the scope `approvals`,
    and results the scope `sessions` or `environment`.
    """
    body.check()
    payloads = [plain(event) for event in body.events]
    visible.check_session(db, principal, session_id)
    locked = lock(db, session_id, principal)
    events = receive(locked, payloads)
    return responses.SentEvents.from_row(None, data=[event.shown(whole=runs_tools(principal)) for event in events])


@events.get("")
@reads(EventList, "read or own", response=responses.EventPage, writes_if="reveal")
def index(db: Db, principal: Principal, query: EventList, session_id: str) -> Callable[[], responses.EventPage]:
    """List a session's events in order.

    The types `approval.*`, `grant.*` and `model.*` are listed only with `include=approvals`. `reveal` shows masked secrets.
    It needs the scope `reveal`, and is audited.
    """
    visible.find_session(db, principal, session_id)
    return listed(db, principal, query, session_id)


def listed(
    db: Db, principal: Principal, query: EventList, session_id: str, thread_id: str | None = None
) -> Callable[[], responses.EventPage]:
    """Return a function that returns a page of the events that `query` selects, and reads nothing.

    `thread_id`: the thread whose stream is listed. None: the session's own, whose stream is the session's.
    """
    which = EventFilter(
        db.get_one(Session, session_id),
        thread_id := thread_id or own_id(session_id),
        types=frozenset(query.types) if query.types else None,
        without=() if "approvals" in query.include else OF_ASSENT,
        between=tuple(query.between),
    )
    order = ASCENDING if query.order == "asc" else ASCENDING.reversed()
    [seq] = place(order, query.page) if query.page else [None]
    read = events_before(db, which, seq, query.limit) if order.descending else events_after(db, which, seq or 0, query.limit)
    rows, more = read
    after = order.cursor(rows[-1]) if more else None
    secrets = revealing.revealed(db, principal, session_id, rows) if query.reveal else {}
    whole = runs_tools(principal)

    def shown() -> responses.EventPage:
        data = [row.shown(whole=whole, thread_id=thread_id) | secrets.get(row.id, {}) for row in rows]
        return responses.EventPage.from_row(None, data=data, next_page=after)

    return shown


def runs_tools(principal: Principal) -> bool:
    """True for a key that may post the results of client tools. Such a key sees the unmasked inputs of their calls.

    A person runs no tools and sees masked secrets only with `reveal`.
    """
    return not isinstance(principal, PersonPrincipal) and not principal.scopes.isdisjoint({"sessions", "environment"})


@events.get("/stream")
@opens(Door(responses.StreamFrame, EventStream, scopes=("read or own",), media_type=EVENT_STREAM, headers=("Last-Event-ID",)))
def stream(session_id: str) -> Response:
    """Stream a session's events as server-sent events.

    The stream begins after `Last-Event-ID`. Without this header it begins after the events that this key has just sent, or now.
    """
    principal = auth.authenticate("read or own")
    parsing.check_ids({"session_id": session_id})
    return opened(principal, session_id)


def opened(principal: Principal, session_id: str, thread_id: str | None = None) -> Response:
    """Return a stream of the session's events, or of one thread's, according to the request's query and headers."""
    query = parsing.query(EventStream)
    reader = Reader.of(principal, session_id, thread_id, deltas=bool(query.event_deltas))
    hub().register(reader)
    try:
        over = _take_position(principal, reader)
    except BaseException:
        hub().unregister(reader)
        raise
    previews = frozenset(query.event_deltas)
    approvals = "approvals" in query.include
    frames = Stream(reader, principal.workspace_id, approvals, previews, runs_tools(principal), over)
    response = Response(iter(frames), mimetype=EVENT_STREAM, headers=HEADERS)
    response.call_on_close(lambda: hub().unregister(reader))
    return response


def _take_position(principal: Principal, reader: Reader) -> bool:
    """Set the position at which the stream begins. The hub announces later events. Returns True if no event will follow."""

    def take(db: Db) -> bool:
        # One round trip: the next lines take the rows from memory.
        db.read(select_one(Session, reader.session_id), select_one(Thread, reader.session_id, reader.thread_id))
        session = visible.find_session(db, principal, reader.session_id)
        thread = db.get(Thread, session.id, reader.thread_id)
        is_over = thread is not None and thread.status == "terminated"
        reader.seq = _position(db, session, principal, reader.thread_id if is_over else None)
        if reader.seq < session.last_seq:
            reader.look = True
        return is_over

    return transact(principal.workspace_id, take, only_reads=True)


def _position(db: Db, session: Session, principal: Principal, ended_thread_id: str | None) -> int:
    """Return the number of the event after which the stream begins.

    The client names the event by `Last-Event-ID`. Without that header, the stream of a principal who sent events and has not yet
    been streamed the end of their run begins after those events. Any other stream begins after the newest event; that of a thread
    that has ended, before its last event.
    """
    last_event_id = request.headers.get("last-event-id", "")
    if last_event_id:
        if not last_event_id.isascii() or not last_event_id.isdecimal() or len(last_event_id) > 18:
            raise Invalid("Last-Event-ID", "must be the `id` of an event of this stream, a number.")
        return min(int(last_event_id), session.last_seq)
    if principal.id in session.stream_positions:
        return session.stream_positions[principal.id]
    if ended_thread_id:
        last = ended_by(ended_thread_id, session.id)
        seq = db.value(_LAST, session=session.id, thread=ended_thread_id, type=last)
        return (seq or _archived_end(db, session, ended_thread_id, last) or session.last_seq + 1) - 1
    return session.last_seq


def _archived_end(db: Db, session: Session, thread_id: str, last: str) -> int | None:
    """Return the number of a thread's last event, if it is in the archive."""
    ended_at = db.get_one(Thread, session.id, thread_id).archived_at
    event = archived_at(db, session.id, ended_at, lambda event: event.thread_id == thread_id and event.type == last)
    return event.seq if event else None


_LAST = "SELECT max(seq) FROM event WHERE session_id = %(session)s AND thread_id = %(thread)s AND type = %(type)s"
