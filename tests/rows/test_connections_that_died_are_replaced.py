"""Connections that the server ended are replaced before use, and an idle client keeps no lock."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from crashes.processes import wait_for
from own_database import DatabaseUrls
from rows.stage import Stage
from sqlalchemy import make_url

from models.database.exchange import Connection, Statement
from models.database.transactions import is_transient, transaction
from models.flow.lock import lock
from models.session.locked import try_lock

POOLED = 4
PID = Statement("SELECT pg_backend_pid()", {})
HASTY = Statement("SELECT set_config('idle_in_transaction_session_timeout', '50ms', true)", {})


def pids_of(stage: Stage) -> set[int]:
    """The process ids of the servers of transactions that are open at once."""
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


def test_no_transaction_fails_after_all_pooled_connections_were_ended(stage: Stage, database_urls: DatabaseUrls) -> None:
    """As after a failover."""
    before = pids_of(stage)
    assert len(before) == POOLED
    with psycopg.connect(database_urls.admin, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", [list(before)])
        wait_for("they have ended", lambda: gone(admin, before))
    assert len(pids_of(stage)) == POOLED


@contextlib.contextmanager
def unclosed(to_port: int) -> Iterator[int]:
    """Listen on a port for one connection, and pass on all that it and the other port say, but not that the other port closes."""

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)

    def pass_on() -> None:
        here, _ = listener.accept()
        with here, socket.create_connection(("127.0.0.1", to_port)) as there:
            back = threading.Thread(target=carry, args=(there, here))
            back.start()
            carry(here, there)
            with contextlib.suppress(OSError):  # it may have closed
                there.shutdown(socket.SHUT_RDWR)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        passing = threading.Thread(target=pass_on)
        passing.start()
        yield listener.getsockname()[1]
        passing.join(20)


def test_a_connection_is_replaced_once_its_server_has_said_that_it_ends(database_urls: DatabaseUrls) -> None:
    """It closes the connection a little later."""
    port = make_url(database_urls.admin).port or 5432
    with (
        unclosed(port) as near,
        psycopg.connect(database_urls.admin, autocommit=True) as admin,
        Connection.connect(database_urls.app.replace(str(port), str(near)), autocommit=True) as connection,
    ):
        assert not connection.hung_up()
        admin.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        wait_for("the message is here", connection.hung_up)
        assert not connection.closed


def test_a_process_that_stops_in_a_transaction_does_not_keep_the_session_locked(stage: Stage, database_urls: DatabaseUrls) -> None:
    """Postgres ends the connection. It counts the client as idle after an exchange, too."""
    session_id = stage.session()

    def stand_still() -> None:
        with transaction(stage.workspace_id) as db:
            db.read(HASTY)
            lock(db, session_id, stage.principal)
            [[(pid,)]] = db.read(PID)
            with psycopg.connect(database_urls.admin, autocommit=True) as admin:
                wait_for("its server has ended", lambda: gone(admin, {pid}))
            with transaction(stage.workspace_id) as other:
                assert try_lock(other, session_id, stage.principal)

    with pytest.raises(psycopg.Error) as lost:
        stand_still()
    assert is_transient(lost.value)


def test_a_failed_transaction_leaves_no_write_to_the_next_one(stage: Stage) -> None:
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


def test_a_statement_whose_table_has_changed_fails_once_and_can_be_retried(stage: Stage, database_urls: DatabaseUrls) -> None:
    """As when a migration runs beside the process."""
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


def test_a_text_that_postgres_cannot_hold_is_refused_for_good(stage: Stage) -> None:

    def say_nul() -> None:
        with transaction(stage.workspace_id) as db:
            db.read(Statement("SELECT %(text)s", {"text": "\0"}))

    with pytest.raises(psycopg.Error) as refused:
        say_nul()
    assert not is_transient(refused.value)


def test_a_statement_that_cannot_be_sent_leaves_the_transaction_usable(stage: Stage) -> None:
    here = Statement("SELECT current_setting('assent.workspace'), now() = statement_timestamp()", {})
    with transaction(stage.workspace_id) as db:
        with pytest.raises(psycopg.Error):
            db.read(Statement("SELECT %(text)s", {"text": "\0"}))
        assert db.read(here, here)[1] == [(stage.workspace_id, False)]


def test_a_pooled_connection_keeps_no_workspace(stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        assert db.read(PID)
    with transaction(role="app") as db:
        assert not db.value("SELECT current_setting('assent.workspace', true)")
