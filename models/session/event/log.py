"""A session's events in order, wherever they are: in rows, or in parts of the archive.

Events up to `Session.archived_through` are in parts, all later ones in rows. In the place of a part that cannot be read stands one
event, which names the part.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.database.rows import Db
from models.database.tables import table_of
from models.errors import Unreadable
from models.session.archive.contents import Contents, Fault
from models.session.archive.part import ArchivePart
from models.session.archive.reading import content_of, rows_at
from models.session.event.row import MESSAGES, Event, in_stream_of
from models.session.row import Session
from models.session.thread.row import Thread

MOST_PARTS = 20
"""Most parts that one page reads once it has an event."""
Bound = tuple[str, datetime]
"""An operator's name, of `_OPERATORS`, and a time."""
_OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True)
class EventFilter:
    """Which events of a thread's stream are read. `sql` and `fits` are the same condition."""

    session: Session
    thread_id: str
    types: frozenset[str] | None = None
    """None: every type."""
    without: tuple[str, ...] = ()
    """Prefixes of types that are left out."""
    between: tuple[Bound, ...] = ()
    """Bounds of `processed_at`."""

    def fits(self, event: Event) -> bool:
        """True if the event is one of them."""
        of_type = not event.type.startswith(self.without) and (self.types is None or event.type in self.types)
        return of_type and event.is_in(self.thread_id) and all(_is_within(event.processed_at, *limit) for limit in self.between)

    def sql(self) -> tuple[str, dict[str, Any]]:
        """Return the condition on rows, and its values."""
        conditions = ["session_id = %(session)s", in_stream_of(self.thread_id, self.session.id)]
        values: dict[str, Any] = {"session": self.session.id, "thread": self.thread_id}
        if self.without:
            conditions, values = [*conditions, "NOT type ^@ ANY(%(without)s)"], values | {"without": list(self.without)}
        if self.types is not None:
            conditions, values = [*conditions, "type = ANY(%(types)s)"], values | {"types": sorted(self.types)}
        for number, (operator, at) in enumerate(self.between):
            conditions = [*conditions, f"processed_at {_OPERATORS[operator]} %(bound_{number})s"]
            values |= {f"bound_{number}": at}
        return " AND ".join(conditions), values


def _is_within(time: datetime | None, operator: str, limit: datetime) -> bool:
    if time is None:
        return False
    return {"gt": time > limit, "gte": time >= limit, "lt": time < limit, "lte": time <= limit}[operator]


def events_after(db: Db, which: EventFilter, seq: int, limit: int) -> tuple[list[Event], bool]:
    """Return at most `limit` of these events after the number `seq`, in order, and whether there may be more."""
    through = which.session.archived_through
    events, is_cut = _archived(which, _parts(db, which, seq), range(seq + 1, through + 1), limit + 1)
    if len(events) <= limit and not is_cut:
        events += _in_rows(db, which, "seq > %(seq)s ORDER BY seq", max(seq, through), limit + 1 - len(events))
    return events[:limit], is_cut or len(events) > limit


def events_before(db: Db, which: EventFilter, seq: int | None, limit: int) -> tuple[list[Event], bool]:
    """Return at most `limit` events before the number `seq`, or the newest, the last first, and whether there may be more."""
    end, through = seq if seq is not None else which.session.last_seq + 1, which.session.archived_through
    events = _in_rows(db, which, "seq > %(through)s AND seq < %(seq)s ORDER BY seq DESC", end, limit + 1, through=through)
    if len(events) > limit:
        return events[:limit], True
    parts = (part for part in reversed(_parts(db, which, 0)) if part.first_seq < end)
    before, is_cut = _archived(which, parts, range(1, end), limit + 1 - len(events), descending=True)
    events += before
    return events[:limit], is_cut or len(events) > limit


def _in_rows(db: Db, which: EventFilter, end: str, seq: int, limit: int, **more: int) -> list[Event]:
    condition, values = which.sql()
    return db.find(Event, f"WHERE {condition} AND {end} LIMIT %(limit)s", **values, seq=seq, limit=limit, **more)


def _parts(db: Db, which: EventFilter, seq: int) -> list[ArchivePart]:
    return list(ArchivePart.after_event(db, which.session.id, seq)) if which.session.archived_through > seq else []


def _archived(
    which: EventFilter, parts: Iterable[ArchivePart], span: range, limit: int, *, descending: bool = False
) -> tuple[list[Event], bool]:
    """Return at most `limit` of these events of these parts and numbers, and whether parts were left out that may have more."""
    events: list[Event] = []
    for count, part in enumerate(parts):
        if len(events) >= limit:
            break
        if count >= MOST_PARTS and events:
            return events, True
        of_part = [event for event in _events(part, which.thread_id) if event.seq in span and (which.fits(event) or _is_gap(event))]
        events += of_part[::-1] if descending else of_part
    return events[:limit], False


def archived_after(db: Db, session_id: str, seq: int, thread_id: str) -> list[Event]:
    """Return the events after the number `seq` in the part that has the next one; none if this event is not in the archive."""
    if (db.value("SELECT archived_through FROM session WHERE id = %(id)s", id=session_id) or 0) <= seq:
        return []
    parts = ArchivePart.after_event(db, session_id, seq)
    return [event for event in _events(parts[0], thread_id) if event.seq > seq] if parts else []


def archived_at(db: Db, session_id: str, time: datetime | None, fits: Callable[[Event], bool]) -> Event | None:
    """Return the first fitting event in the part of this time, if there is one. Raises Unreadable."""
    return next((event for event in rows_at(db, Event, session_id, time) if fits(event)), None)


def seq_at(db: Db, session: Session, moment: datetime) -> int:
    """Return the number of the first event of a session at or after a time, wherever it is; without one, that behind the last."""
    part = next(iter(ArchivePart.at(db, session.id, moment)), None) if session.archived_through else None
    if part is not None:
        with suppress(Unreadable):
            return next(
                (event.seq for event in rows_at(db, Event, session.id, moment) if event.created_at >= moment), part.last_seq
            )
        return part.last_seq
    seq: int | None = db.value(_SEQ_AT, session=session.id, seq=session.archived_through, moment=moment)
    return session.last_seq + 1 if seq is None else seq


_SEQ_AT = """
    SELECT seq FROM event WHERE session_id = %(session)s AND seq > %(seq)s AND created_at >= %(moment)s ORDER BY seq LIMIT 1
"""


def first_message(db: Db, session_id: str, thread_id: str) -> Event | None:
    """Return the message with which a thread began, if it is in the archive. Raises Unreadable."""
    thread = db.get(Thread, session_id, thread_id)
    begun_at = thread.created_at if thread else None
    return archived_at(db, session_id, begun_at, lambda event: event.thread_id == thread_id and event.type in MESSAGES)


def _events(part: ArchivePart, thread_id: str) -> Iterator[Event]:
    """Yield the events of a part, or the one that stands for a part that cannot be read, in the stream of this thread."""
    content = content_of(part)
    if isinstance(content, Contents):
        table = table_of(Event)
        yield from (table.of_json(row) for row in content.of("event"))
    else:
        yield _gap(part, content, thread_id)


def _is_gap(event: Event) -> bool:
    return event.created_at is None


def _gap(part: ArchivePart, fault: Fault, thread_id: str) -> Event:
    error = {"type": "unknown_error", "message": f"Events are missing here: {fault.sentence}", "retry_status": {"type": "terminal"}}
    return Event(
        session_id=part.session_id,
        seq=part.last_seq,
        id="sevt_" + part.id.partition("_")[2],
        workspace_id=part.workspace_id,
        thread_id=thread_id,
        type="session.error",
        body={"error": error},
        processed_at=part.until,
    )
