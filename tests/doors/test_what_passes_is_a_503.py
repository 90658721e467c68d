"""A temporary fault is a 503 that says when to retry. `/healthz` and `/readyz` answer without a key."""

from collections.abc import Callable, Iterator

import httpx2
import psycopg
import pytest
from doors.served import Caller, bad, good, key, message, served
from own_database import DatabaseUrls
from psycopg import sql
from rows.stage import Stage

from models.audit.principal import system
from models.database import revisions
from models.database.transactions import transaction
from models.flow.lock import lock


@pytest.fixture(scope="module")
def lost_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server without database and Redis."""
    gone = "postgresql://assent_app:x@127.0.0.1:1/assent"
    env = {"DATABASE_URL": gone, "DATABASE_SYSTEM_URL": gone, "REDIS_URL": "redis://127.0.0.1:1/0"}
    with served(tmp_path_factory.mktemp("lost") / "log", **env) as url:
        yield url


def test_a_request_for_a_session_that_stays_locked_is_a_503(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    with transaction(stage.workspace_id) as db:
        lock(db, session["id"], system("test", db.workspace_id))
        answer = caller.tell(session["id"], message())
        assert bad(answer, 503)["type"] == "overloaded_error"
        assert "x-should-retry" not in answer.headers
    assert caller.events(session["id"]) == []
    good(caller.tell(session["id"], message()))


def test_without_a_database_a_request_is_a_503(lost_api: str, stage: Stage) -> None:
    with Caller(lost_api, key(stage)) as caller:
        bad(caller.get("/v1/agents"), 503)
        bad(caller.post("/v1/agents", json={}), 503)


@pytest.mark.parametrize("path", ["/inbox", "/inbox/account"])
def test_without_a_database_a_page_says_so_as_a_page(lost_api: str, path: str) -> None:
    answer = httpx2.get(lost_api + path, cookies={f"assent-{httpx2.URL(lost_api).port}": "x" * 43})
    assert answer.status_code == 503
    assert answer.headers["content-type"].startswith("text/html")
    assert ">Try again</h1>" in answer.text
    assert "try again in a moment" in answer.text
    assert f"Request id: {answer.headers['request-id']}" in answer.text


def test_without_a_database_the_server_is_alive_and_not_ready(lost_api: str) -> None:
    assert good(httpx2.get(f"{lost_api}/healthz")) == {"status": "ok"}
    answer = httpx2.get(f"{lost_api}/readyz")
    assert answer.status_code == 503
    database = "unreachable, or without a schema: run `assent migrate`"
    assert answer.json() == {"status": "not ready", "database": database}


def test_administrators_see_the_state_of_each_part(caller: Caller) -> None:
    assert good(caller.get("/readyz")) == {"status": "ok", "database": "ok", "redis": "ok", "audit": "ok", "held_back": []}


@pytest.fixture
def revised(database_urls: DatabaseUrls) -> Iterator[Callable[[str, str], None]]:
    """Changes the schema's revision, and the revisions that it serves: `revised("9017", "9017 0016")`. Undone after the test."""
    with psycopg.connect(database_urls.owner, autocommit=True) as db:
        before = db.execute(revisions.READ.encode()).fetchone()
        assert before

        def change(revision: str, serves: str) -> None:
            db.execute("UPDATE alembic_version SET version_num = %s", [revision])
            db.execute(sql.SQL("COMMENT ON TABLE alembic_version IS {}").format(sql.Literal(serves)))

        yield change
        change(*before)


@pytest.mark.parametrize("serves", ["", "9017", "9017 0016", "0001", "0002 0001"])
def test_a_server_beside_a_schema_that_it_does_not_know_is_not_ready(
    api: str, revised: Callable[[str, str], None], serves: str
) -> None:
    revised("9017", serves)
    answer = httpx2.get(f"{api}/readyz")
    assert answer.status_code == 503
    assert answer.json()["status"] == "not ready"
    assert "has the revision 9017, which this release (revision " in answer.json()["database"]
    assert "start the release that migrated this database" in answer.json()["database"]


def test_a_server_stays_ready_beside_a_newer_schema_that_serves_it(api: str, revised: Callable[[str, str], None]) -> None:
    """During a deployment the previous release still runs."""
    revised("9017", f"9017 {max(revisions.SCRIPTS.glob('versions/[0-9]*.py')).name[:4]}")
    assert good(httpx2.get(f"{api}/readyz")) == {"status": "ok"}
