"""One stream: a session's events after a position, as server-sent events, in order and each once.

    event: agent.message
    id: 17
    data: {"type": "agent.message", "id": "sevt_...", ...}

`id` is the event's sequence number. A client that sends it back as `Last-Event-ID` continues after that event. Deltas have no `id`.
"""

import json
import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from api.streams.reader import SO_FAR, Reader
from models.database import clock, ids
from models.database.rows import Db
from models.database.tables import table_of
from models.database.transactions import ERRORS, transact, transaction
from models.errors import Busy
from models.pure.times import rfc3339
from models.session.event.fields import ShownFields
from models.session.event.log import archived_after
from models.session.event.of_session import DeletedEvent
from models.session.event.row import OF_ASSENT, Event, in_stream_of
from models.session.stream_position import streamed
from models.session.thread.row import own_id
from models.settings import settings

log = logging.getLogger("assent.api")

PAGE = 100
"""Most events that are read at once. The limit bounds a stream's memory."""
PAGE_BYTES = 250_000
"""Most bytes of bodies that are read at once. The last body may exceed the limit."""

COMMENT = b": \n\n"
HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
"""Headers of each response that is a stream: no proxy may store or delay the stream."""
RESTS = ("session.status_idle", "session.status_terminated")
"""The types of the events that end a run."""


@dataclass
class Stream:
    """The stream of one client. Iterate over it for the bytes to send."""

    reader: Reader
    workspace_id: str
    approvals: bool
    """True if the client sees the event types `approval.*`, `grant.*` and `model.*`."""
    previews: frozenset[str]
    """Types of events whose deltas the client sees."""
    whole: bool
    """True if the client may run client tools, so their inputs contain their secrets."""
    over: bool
    """True if no event will follow the stored ones, since the session or the thread is terminated."""
    _open: set[str] = field(default_factory=set)
    """Events whose preview has begun."""
    _closed: deque[str] = field(default_factory=lambda: deque(maxlen=64))
    """Events that were sent completely. Their late deltas are dropped."""

    def __iter__(self) -> Iterator[bytes]:
        """Return the bytes to send."""
        return self.reader.pieces(self._frames())

    def _frames(self) -> Iterator[bytes]:
        """Yield a first comment at once, so that the headers are sent; then events, and comments while there are none."""
        yield COMMENT
        sent_at = time.monotonic()
        while True:
            self.reader.wake.clear()
            for frame in self._new_frames():
                yield frame
                sent_at = time.monotonic()
            if self.over:
                return
            pause = sent_at + settings().stream_comment_seconds - time.monotonic()
            if not self.reader.wake.wait(max(pause, 0)):
                yield COMMENT
                sent_at = time.monotonic()

    def _new_frames(self) -> Iterator[bytes]:
        """Yield the frames that can be sent now: stored events, then deltas."""
        if self.reader.refused or self.reader.has_no_client:
            self.over = True
            return
        while self.reader.look:
            self.reader.look = False
            yield from self._stored()
        if self.reader.gone and not self.over:
            self.over = True
            yield _frame("session.deleted", self._deleted())
        if not self.over:
            yield from self._deltas()

    def _stored(self) -> Iterator[bytes]:
        try:
            events, more = transact(self.workspace_id, lambda db: following(db, self.reader), only_reads=True)
        except (*ERRORS, Busy) as error:
            # The stream stays open without the database or the archive. The hub's next tick wakes it again.
            log.warning("stream of %s: %s", self.reader.session_id, type(error).__name__)
            return
        if events:
            self.reader.seq = events[-1].seq
        while events:
            event = events.popleft()
            thread_id = self.reader.thread_id
            is_shown = event.is_in(thread_id) and (self.approvals or not event.type.startswith(OF_ASSENT))
            if is_shown and event.type in RESTS and not self._recorded(event):
                self.reader.seq = event.seq - 1
                return
            if is_shown:
                yield _frame(event.type, event.shown(whole=self.whole, thread_id=thread_id), event.seq)
            self._open.discard(event.id)
            if is_shown and event.type == "agent.message":
                self._closed.append(event.id)
            if is_shown and event.type == ended_by(thread_id, event.session_id):
                self.over = True
                return
        self.reader.look = self.reader.look or more

    def _recorded(self, event: Event) -> bool:
        """Record that this client gets the event with which the run ends or waits. Returns False if the database fails.

        The record precedes the event: a client that has read the event, and opens its next stream in any process, must not get the
        run again. Nothing is recorded for a client that has hung up.
        """
        if self.reader.hung_up():
            return True
        ended = event.body.get("stop_reason", {}).get("type") != "requires_action"
        try:
            with transaction(self.workspace_id) as db:
                streamed(db, self.reader.session_id, self.reader.key_id, event.seq, ended=ended)
        except ERRORS as error:
            log.warning("stream of %s: %s", self.reader.session_id, type(error).__name__)
            return False
        return True

    def _deltas(self) -> Iterator[bytes]:
        if self.reader.overrun:
            self.reader.overrun = False
            self._open.clear()
        while self.reader.frames:
            frame = self.reader.frames.popleft()
            if frame["type"] == SO_FAR:
                yield from self._late_preview(frame["frames"])
            elif self._shown(frame):
                yield _preview(frame)

    def _late_preview(self, frames: list[dict[str, Any]]) -> Iterator[bytes]:
        """Yield the text so far of a preview that began before this stream, or of which this stream lost deltas."""
        if frames[0]["event"]["id"] in self._open:
            return
        yield from self._stored()  # events come before the preview, and the message itself may be among them
        if not self.over and self._shown(frames[0]):
            yield from map(_preview, frames)

    def _shown(self, frame: dict[str, Any]) -> bool:
        """True if this delta belongs to a preview that this stream has shown from its beginning, and that has not ended."""
        if frame.get("type") == "event_start":
            event = frame["event"]
            if event["type"] in self.previews and event["id"] not in self._closed:
                self._open.add(event["id"])
                return True
            return False
        return frame.get("event_id") in self._open

    def _deleted(self) -> dict[str, Any]:
        """Return the event of the session's deletion. It is not stored, since the events were deleted with the session."""
        try:
            with transaction(self.workspace_id, only_reads=True) as db:
                now = rfc3339(clock.now(db))
        except ERRORS:
            now = None
        return {**DeletedEvent(type="session.deleted"), **ShownFields(id=ids.new("sevt"), processed_at=now)}


def ended_by(thread_id: str, session_id: str) -> str:
    """Return the type of the last event of a thread's stream. The stream of a session's own thread is the session's."""
    return "session.status_terminated" if thread_id == own_id(session_id) else "session.thread_status_terminated"


_COLUMNS = tuple(table_of(Event).columns)
_SEQ = _COLUMNS.index("seq")
# Reads event by event until the page is full, so that no body beyond the page is read. (A running sum over all events would read
# all bodies, for every page.) Nor is the body of an event that is not in the thread's stream. The values are in subqueries, or
# Postgres plans the query anew each time, because its estimate depends on the session: that takes longer than to run the query.
_PAGE = """
    WITH RECURSIVE page AS (
        (
            SELECT event.*, {bytes} AS bytes, 1 AS rows
            FROM event WHERE session_id = (SELECT %(session)s) AND seq > (SELECT %(seq)s::bigint) ORDER BY seq LIMIT 1
        )
        UNION ALL
        SELECT event.*, page.bytes + {bytes}, page.rows + 1
        FROM page CROSS JOIN LATERAL (
            SELECT * FROM event WHERE session_id = (SELECT %(session)s) AND event.seq > page.seq ORDER BY seq LIMIT 1
        ) event
        WHERE page.bytes < {most_bytes} AND page.rows < {most_rows}
    ) SELECT {columns}, bytes FROM page AS event ORDER BY seq
"""


def following(db: Db, reader: Reader) -> tuple[deque[Event], bool]:
    """Return the next page of events after `reader.seq`, and whether there may be more events.

    Events that are not in the stream of the reader's thread have an empty body.
    """
    in_stream = in_stream_of(reader.thread_id, reader.session_id)
    body = f"CASE WHEN {in_stream} THEN body ELSE '{{}}' END"
    columns = ", ".join(body if column == "body" else column for column in _COLUMNS)
    size = f"CASE WHEN {in_stream} THEN octet_length(event.body::text) ELSE 0 END"
    statement = _PAGE.format(bytes=size, columns=columns, most_bytes=PAGE_BYTES, most_rows=PAGE)
    page = db.rows(statement, session=reader.session_id, seq=reader.seq, thread=reader.thread_id)
    has_gap = not page or page[0][_SEQ] != reader.seq + 1  # an event has the next number, unless that is in the archive
    if has_gap and (archived := archived_after(db, reader.session_id, reader.seq, reader.thread_id)):
        return _first_of(archived, reader.thread_id), True
    more = len(page) == PAGE or (bool(page) and page[-1][-1] >= PAGE_BYTES)
    return deque(Event(**dict(zip(_COLUMNS, record, strict=False))) for record in page), more


def _preview(frame: dict[str, Any]) -> bytes:
    """Return a frame of a preview without its offset, which clients do not get."""
    return _frame(frame["type"], {name: value for name, value in frame.items() if name != "offset"})


def _first_of(events: list[Event], thread_id: str) -> deque[Event]:
    """Return as many of these events as a page has."""
    page: deque[Event] = deque()
    size = 0
    for event in events[:PAGE]:
        page.append(event)
        size += len(json.dumps(event.body)) if event.is_in(thread_id) else 0
        if size >= PAGE_BYTES:
            break
    return page


def _frame(kind: str, body: dict[str, Any], seq: int | None = None) -> bytes:
    # ASCII only: some clients read U+2028 and similar characters as the end of a line.
    data = json.dumps(body, separators=(",", ":"))
    number = "" if seq is None else f"id: {seq}\n"
    return f"event: {kind}\n{number}data: {data}\n\n".encode()
