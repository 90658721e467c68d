"""The timeline of a session is the same after its content has gone to the archive, and names what cannot be read there."""

import psycopg
from own_database import Clock, DatabaseUrls
from rows.archived import MONTH, archive, conversation
from rows.stage import Stage

from api.desk.sessions.timeline import Timeline
from models.database import clock as database_clock
from models.database.rows import Db
from models.database.transactions import transact
from models.session.event.log import EventFilter, events_before
from models.session.row import Session
from models.session.thread.row import own_id


def lines(stage: Stage, session_id: str) -> Timeline:
    """The timeline of the session's newest events."""

    def read(db: Db) -> Timeline:
        thread = own_id(session_id)
        rows, _ = events_before(db, EventFilter(db.get_one(Session, session_id), thread), None, 100)
        return Timeline.of(db, rows[::-1], thread, database_clock.now(db))

    return transact(stage.workspace_id, read)


def test_the_lines_and_bars_are_the_same(stage: Stage, clock: Clock) -> None:
    session = conversation(stage)
    before = lines(stage, session)
    clock.advance(MONTH)
    assert archive(stage, session) == 1
    after = lines(stage, session)
    assert [line.css for line in after.lines] == ["person", "agent", "call", "call", "agent", "note"]
    assert (after.lines, after.bars) == (before.lines, before.bars)


def test_a_part_that_cannot_be_read_is_one_line(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    session = conversation(stage)
    clock.advance(MONTH)
    archive(stage, session)
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute("DELETE FROM archive_content")
    [line] = lines(stage, session).lines
    assert line.css == "error"
    assert line.text.startswith("Events are missing here: ")
