"""What a server has ended is found before it is used, and a client that says nothing keeps no lock."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from crashes.processes import wait_for
from own_database import DatabaseUrls
from rows.stage import Stage

from models import flow
from models.database.exchange import Statement
from models.database.transactions import is_transient, transaction
from models.session.session import Session

POOLED = 4
PID = Statement("SELECT pg_backend_pid()", {})
HASTY = Statement("SELECT set_config('idle_in_transaction_session_timeout', '50ms', true)", {})


def pids_of(stage: Stage) -> set[int]:
    """The servers of transactions that are open at once."""
    together = threading.Barrier(POOLED)

    def one(_: int) -> int:
        with transaction(stage.workspace_id) as db:
            [[(pid,)]] = db.read(PID)
            together.wait(timeout=10)
        return int(pid)

    with ThreadPoolExecutor(POOLED) as pool:
        return set(pool.map(one, range(POOLED)))


def gone(admin: "psycopg.Connection[tuple[object, ...]]", pids: set[int]) -> bool:
    return not admin.execute("SELECT FROM pg_stat_activity WHERE pid = ANY(%s)", [list(pids)]).fetchall()


def test_nobody_notices_that_all_pooled_connections_were_ended(stage: Stage, database_urls: DatabaseUrls) -> None:
    """As after a failover: the first request of each would else fail."""
    before = pids_of(stage)
    assert len(before) == POOLED
    with psycopg.connect(database_urls.admin, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", [list(before)])
        wait_for("they have ended", lambda: gone(admin, before))
    assert len(pids_of(stage)) == POOLED


def test_a_process_that_stands_still_in_a_transaction_keeps_the_session_from_nobody(
    stage: Stage, database_urls: DatabaseUrls
) -> None:
    """Postgres ends it: behind an exchange, too, it counts the client as idle."""
    session_id = stage.session()

    def stand_still() -> None:
        with transaction(stage.workspace_id) as db:
            db.read(HASTY)
            flow.lock(db, session_id)
            [[(pid,)]] = db.read(PID)
            with psycopg.connect(database_urls.admin, autocommit=True) as admin:
                wait_for("its server has ended", lambda: gone(admin, {pid}))
            with transaction(stage.workspace_id) as other:
                assert Session.try_lock(other, session_id)

    with pytest.raises(psycopg.Error) as lost:
        stand_still()
    assert is_transient(lost.value)


def test_what_was_queued_and_never_sent_is_not_sent_by_the_next_one(stage: Stage) -> None:
    session_id = stage.session()

    def fail() -> None:
        with transaction(stage.workspace_id) as db:
            db.write("UPDATE session SET title = 'never' WHERE id = %(id)s", id=session_id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with transaction(stage.workspace_id) as db:
        db.rows("SELECT 1")
    assert stage.read(session_id).title is None


def test_a_statement_whose_table_has_changed_fails_once_and_may_be_tried_again(stage: Stage, database_urls: DatabaseUrls) -> None:
    """As while a migration passes under a process that runs."""
    everything = Statement("SELECT * FROM changing", {})

    def look() -> list[tuple[object, ...]]:
        with transaction(stage.workspace_id) as db:
            return db.read(everything)[0]

    with psycopg.connect(database_urls.owner, autocommit=True) as owner:
        owner.execute("CREATE TABLE changing AS SELECT 1 AS first")
        owner.execute("GRANT SELECT ON changing TO assent_app")
        try:
            assert look() == [(1,)]
            owner.execute("ALTER TABLE changing ADD COLUMN second int DEFAULT 2")
            with pytest.raises(psycopg.Error) as changed:
                look()
            assert is_transient(changed.value)
            assert look() == [(1, 2)]
        finally:
            owner.execute("DROP TABLE changing")


def test_what_failed_before_it_was_prepared_is_prepared_the_next_time(stage: Stage) -> None:
    new = Statement("SELECT 'said behind a failure'", {})

    def fail() -> None:
        with transaction(stage.workspace_id) as db:
            db.read(Statement("SELECT 1 / 0", {}), new)

    with pytest.raises(psycopg.Error):
        fail()
    with transaction(stage.workspace_id) as db:
        assert db.read(new, new) == [[("said behind a failure",)]] * 2


def test_a_mistake_of_ours_is_no_passing_failure(stage: Stage) -> None:
    """A text that Postgres cannot hold is refused for good, before it is sent."""

    def say_nul() -> None:
        with transaction(stage.workspace_id) as db:
            db.read(Statement("SELECT %(text)s", {"text": "\0"}))

    with pytest.raises(psycopg.Error) as refused:
        say_nul()
    assert not is_transient(refused.value)


def test_what_cannot_even_be_sent_leaves_the_transaction_and_its_workspace_to_be_opened(stage: Stage) -> None:
    here = Statement("SELECT current_setting('assent.workspace'), now() = statement_timestamp()", {})
    with transaction(stage.workspace_id) as db:
        with pytest.raises(psycopg.Error):
            db.read(Statement("SELECT %(text)s", {"text": "\0"}))
        assert db.read(here, here)[1] == [(stage.workspace_id, False)]


def test_a_transaction_leaves_its_workspace_to_nobody(stage: Stage) -> None:
    """A connection that goes back to its pool sees none."""
    with transaction(stage.workspace_id) as db:
        assert db.read(PID)
    with transaction(role="app") as db:
        assert not db.value("SELECT current_setting('assent.workspace', true)")


def test_a_session_is_locked_once_in_a_transaction(stage: Stage) -> None:
    session_id = stage.session()
    with transaction(stage.workspace_id) as db:
        flow.lock(db, session_id)
        with pytest.raises(AssertionError, match="is locked already"):
            flow.lock(db, session_id)
