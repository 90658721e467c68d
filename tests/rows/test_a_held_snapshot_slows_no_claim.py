"""While a snapshot is held, no claim passes old versions: of rows that have left a queue, or of the sums of a spend limit."""

from collections.abc import Iterator

import psycopg
import pytest
from benchmarks.copies import copy
from own_database import Clock, DatabaseUrls
from rows.crowd import Admin
from rows.spending import COSTS_10, QUOTE, begin, limit
from rows.stage import Stage, say

from models.database.transactions import transaction
from models.operate import queued
from models.session.hints import hint_next
from models.session.turn.row import Turn

LEFT = 2000
FEW = 32
"""Pages that a cycle may read in addition: each of its look-ups passes one more level of the index."""
_DONE = "UPDATE turn SET status = 'done' WHERE id LIKE 'turn_left%'"

_VERSIONS = """
DO $$ BEGIN
    FOR n IN 1..3000 LOOP
        UPDATE spend_sum SET number = number + 1;
    END LOOP;
END $$
"""
_PAGES = """
    SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)
    FROM pg_statio_user_tables WHERE relname IN ('spend_limit', 'spend_sum')
"""


@pytest.fixture
def admin(database_urls: DatabaseUrls, clean_database: None) -> Iterator[Admin]:
    """A connection that fills the tables, while another one holds a snapshot."""
    with psycopg.connect(database_urls.admin, autocommit=True) as db, psycopg.connect(database_urls.admin) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM turn")
        yield db


def leave(admin: Admin, session_id: str) -> None:
    """Have many turns leave the queue that were due for an hour."""
    due_at = "clock_timestamp() - interval '1 hour' + n * interval '1 ms'"
    copy(
        admin,
        "turn",
        f"session_id = '{session_id}'",
        {"id": "'turn_left' || n", "session_id": "'sesn_left' || n", "due_at": due_at},
        LEFT,
    )
    admin.execute(_DONE)
    admin.execute("ANALYZE turn")


def pages_of_look(stage: Stage, **values: None) -> int:
    """Look for the turns at the front of the queue, as a claim does. Returns how many pages the look reads, with other `values`."""
    with transaction(stage.workspace_id) as db:
        hint_next(db, Turn.TASK)
        [look] = db.closing.values()
        [plan] = db.value(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {look.sql}", **{**look.values, **values})
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


def test_a_look_does_not_pass_the_turns_that_left_the_queue_before_the_last_one(stage: Stage, admin: Admin) -> None:
    session = stage.session()
    stage.message(session)
    leave(admin, session)
    without_memory, pages = pages_of_look(stage, begins=None), pages_of_look(stage)
    assert (without_memory > LEFT / 40, pages < LEFT / 100) == (True, True), f"{without_memory} pages, then {pages}"


def test_the_sweep_hints_a_turn_that_the_looks_pass(stage: Stage, admin: Admin) -> None:
    session = stage.session()
    stage.message(session)
    stage.begin(session)
    pages_of_look(stage)
    admin.execute(
        "UPDATE turn SET status = 'queued', hinted_at = NULL, due_at = due_at - interval '1 day' WHERE session_id = %s", (session,)
    )
    pages_of_look(stage)
    assert [hint.args[1] for hint in queued.hints(Turn)] == [session]


def test_a_look_begins_anew_when_the_database_s_time_is_earlier_than_the_last_one(stage: Stage, clock: Clock) -> None:
    clock.advance(3600)
    pages_of_look(stage)
    clock.advance(-3600)
    session = stage.session()
    stage.message(session)
    with transaction(stage.workspace_id) as db:
        assert db.find(Turn)[0].hinted_at is not None


def test_a_cycle_at_a_spend_limit_reads_as_many_pages_among_old_versions(stage: Stage, admin: Admin) -> None:
    stage.quote = QUOTE
    limit(stage, "1000000")
    limit(stage, "1000000", period="daily")
    session = begin(stage)

    def cycle() -> int:
        before = pages_of_limits(stage)
        stage.reply(session, say("That was $10."), charge=COSTS_10)
        stage.message(session)
        return pages_of_limits(stage) - before

    for _ in range(6):  # Postgres then has its plans
        few = cycle()
    admin.execute(_VERSIONS)
    admin.execute("VACUUM ANALYZE spend_limit, spend_sum")
    for _ in range(6):
        many = cycle()
    assert few <= many <= few + FEW, f"{few} pages, {many} among old versions"


def pages_of_limits(stage: Stage) -> int:
    """Return how many pages of limits and their sums the connection of this process has read."""
    with transaction(stage.workspace_id) as db:
        db.rows("SELECT pg_stat_force_next_flush()")
    with transaction(stage.workspace_id) as db:
        return int(db.value(_PAGES))
