"""The timeline of a session is the same after its content has gone to the archive, and names what cannot be read there."""

import psycopg
from own_database import Clock, DatabaseUrls
from rows.archived import MONTH, archive, conversation
from rows.stage import Stage

from api.desk.sessions.timeline import Timeline
from api.desk.sessions.times import Place, Times, Window
from models.database import clock as database_clock
from models.database.rows import Db
from models.database.transactions import transact
from models.session.event.log import EventFilter, events_before, seq_at
from models.session.row import Session
from models.session.thread.row import Thread, own_id


def lines(stage: Stage, session_id: str) -> Timeline:
    """The timeline of the session's newest events."""

    def read(db: Db) -> Timeline:
        thread = own_id(session_id)
        rows, _ = events_before(db, EventFilter(db.get_one(Session, session_id), thread), None, 100)
        return Timeline.of(db, rows[::-1], thread)

    return transact(stage.workspace_id, read)


def times(stage: Stage, session_id: str) -> Times:
    """The times of the whole session, beside a page without lines."""

    def read(db: Db) -> Times:
        thread = db.get_one(Thread, session_id, own_id(session_id))
        return Times.of(db, thread, Place([], "/s", Window.of(thread, None)), database_clock.now(db))

    return transact(stage.workspace_id, read)


def test_the_lines_and_bars_are_the_same(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    before, times_before = lines(stage, session), times(stage, session)
    clock.advance(MONTH)
    assert archive(stage, session) == 1
    after = lines(stage, session)
    assert [line.css for line in after.lines] == ["person", "agent", "call", "call", "agent", "note"]
    assert after.lines == before.lines
    assert times(stage, session).bars == times_before.bars
    assert {bar.lane for bar in times_before.bars} == {"model", "tool", "person"}


def test_a_time_leads_to_its_event_wherever_that_is(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    events = [(event.seq, event.created_at) for event in stage.events(session)]

    def places() -> list[int]:
        return [transact(stage.workspace_id, lambda db, at=at: seq_at(db, db.get_one(Session, session), at)) for _, at in events]

    first_of = {at: min(seq for seq, other in events if other == at) for _, at in events}
    assert places() == [first_of[at] for _, at in events]
    clock.advance(MONTH)
    archive(stage, session)
    assert places() == [first_of[at] for _, at in events]


def test_a_part_that_cannot_be_read_is_one_line(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    session = conversation(stage)
    clock.advance(MONTH)
    archive(stage, session)
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute("DELETE FROM archive_content")
    [line] = lines(stage, session).lines
    assert line.css == "error"
    assert line.text.startswith("Events are missing here: ")
