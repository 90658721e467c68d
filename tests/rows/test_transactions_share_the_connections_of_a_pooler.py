"""Behind PgBouncer in transaction mode no transaction fails, meets another's rows or lacks its time limits."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from crashes.processes import wait_for
from own_database import DatabaseUrls
from psycopg import sql
from rows.stage import Stage, call, say

import deploy
from deploy.folder import free_port
from models.database import transactions
from models.database.roles import check_start
from models.database.transactions import transaction
from models.settings import settings
from models.workspace.api_key import ApiKey, NewKey

SERVER_CONNECTIONS = 3
THREADS = 10
TRANSACTIONS = 300

CONFIGURATION = (Path(deploy.__file__).parent / "pgbouncer.ini").read_text()


@pytest.fixture
def pooler(stage: Stage, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseUrls]:
    """PgBouncer in front of the database. The transactions of this process go through it."""
    binary = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if binary is None:
        pytest.skip("NOT TESTED: PgBouncer, which is not installed (apt-get install pgbouncer)")
    database, port = urlsplit(database_urls.app), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        users = [urlsplit(url) for url in (database_urls.app, database_urls.system)]
        (folder / "users").write_text("".join(f'"{user.username}" "{user.password}"\n' for user in users))
        own = {
            "assent = host=127.0.0.1 port=5432": f"* = host={database.hostname} port={database.port}",
            "listen_port = 6432": f"listen_port = {port}\nunix_socket_dir =",
            "/etc/pgbouncer/users": str(folder / "users"),
            "default_pool_size = 20\n": f"default_pool_size = {SERVER_CONNECTIONS}\n",
            "reserve_pool_size = 5\n": "",
        }
        configuration = CONFIGURATION
        for line, instead in own.items():
            assert line in configuration
            configuration = configuration.replace(line, instead)
        (folder / "ini").write_text(configuration)
        command = [binary, "--quiet", str(folder / "ini"), *(["--user", "nobody"] if os.geteuid() == 0 else [])]
        with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            urls = [f"{url.scheme}://{url.username}:{url.password}@127.0.0.1:{port}{url.path}" for url in users]
            wait_for("PgBouncer answers", lambda: process.poll() is None and answers(urls[0]))
            for variable, value in zip(
                ("DATABASE_URL", "DATABASE_SYSTEM_URL", "ASSENT_DATABASE_POOLER"), [*urls, "true"], strict=True
            ):
                monkeypatch.setenv(variable, value)
            settings.cache_clear()
            transactions.dispose()
            yield database_urls
            transactions.dispose()
            process.terminate()


def answers(url: str) -> bool:
    """True if a server answers."""
    try:
        psycopg.connect(url, connect_timeout=1).close()
    except psycopg.Error:
        return False
    return True


def test_three_hundred_transactions_of_ten_threads_share_three_connections(pooler: DatabaseUrls) -> None:
    stages = [Stage(), Stage()]

    def transact(number: int) -> int:
        """Write a key and read all keys of a workspace, in two messages. Returns the id of the server's process."""
        workspace_id = stages[number % len(stages)].workspace_id
        with transaction(workspace_id) as db:
            new, _ = ApiKey.create(db, NewKey(f"key {number}"))
            [key] = db.find(ApiKey, "WHERE name = %(name)s", name=f"key {number}")
            workspaces = db.rows("SELECT DISTINCT workspace_id FROM api_key")
            # The same SQL with values of two types is two statements.
            [(text, process_id)] = db.rows("SELECT %(value)s::text, pg_backend_pid()", value=number if number % 3 else f"n{number}")
        assert (key.id, workspaces, text) == (new.id, [(workspace_id,)], str(number) if number % 3 else f"n{number}")
        return int(process_id)

    with ThreadPoolExecutor(THREADS) as pool:
        process_ids = list(pool.map(transact, range(TRANSACTIONS)))
    assert len(set(process_ids)) == SERVER_CONNECTIONS
    for stage in stages:
        with transaction(stage.workspace_id) as db:
            assert db.value("SELECT count(*) FROM api_key WHERE name LIKE 'key %%'") == TRANSACTIONS // len(stages)


def test_a_call_is_asked_allowed_and_run(pooler: DatabaseUrls, stage: Stage) -> None:
    session_id = stage.session(bash="always_ask")
    stage.message(session_id)
    [asked] = stage.reply(session_id, call())
    stage.confirm(session_id, asked.id)
    stage.finish_call(stage.begin_call(asked), "done")
    stage.reply(session_id, say("Done."))
    assert stage.read(session_id).status == "idle"


def test_a_transaction_has_the_time_limits_of_its_role(pooler: DatabaseUrls, stage: Stage) -> None:
    for role in ("app", "system"):
        with transaction(stage.workspace_id if role == "app" else "", role=role) as db:  # type: ignore[arg-type]
            limits = [
                db.value(f"SHOW {name}") for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
            ]
        assert limits == ["5s", "2s", "10s"]


def test_no_process_starts_behind_a_pooler_with_a_role_without_time_limits(
    database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_DATABASE_POOLER", "true")
    settings.cache_clear()
    check_start("web")
    name = urlsplit(database_urls.app).path.removeprefix("/")
    change = sql.SQL("ALTER ROLE assent_app IN DATABASE {} {} lock_timeout {}")
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute(change.format(sql.Identifier(name), sql.SQL("SET"), sql.SQL("= 0")))
        try:
            with pytest.raises(SystemExit, match=r"assent_app has no time limits.*run deploy/roles\.sql again"):
                check_start("web")
        finally:
            db.execute(change.format(sql.Identifier(name), sql.SQL("RESET"), sql.SQL("")))
