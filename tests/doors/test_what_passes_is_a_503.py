"""A temporary fault is a 503 that says when to retry. `/healthz` and `/readyz` answer without a key."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from alembic.script import ScriptDirectory
from doors.served import Caller, bad, good, key, message, served
from rows.stage import Stage

import models
from api.routes.health import _revisions
from models import flow
from models.database.transactions import transaction


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
        flow.lock(db, session["id"])
        answer = caller.tell(session["id"], message())
        assert bad(answer, 503)["type"] == "overloaded_error"
        assert "x-should-retry" not in answer.headers
    assert caller.events(session["id"]) == []
    good(caller.tell(session["id"], message()))


def test_without_a_database_a_request_is_a_503(lost_api: str, stage: Stage) -> None:
    with Caller(lost_api, key(stage)) as caller:
        bad(caller.get("/v1/agents"), 503)
        bad(caller.post("/v1/agents", json={}), 503)


def test_without_a_database_the_server_is_alive_and_not_ready(lost_api: str) -> None:
    assert good(httpx2.get(f"{lost_api}/healthz")) == {"status": "ok"}
    answer = httpx2.get(f"{lost_api}/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready"}


def test_administrators_see_the_state_of_each_part(caller: Caller) -> None:
    assert good(caller.get("/readyz")) == {"status": "ok", "database": "ok", "redis": "ok", "audit": "ok", "held_back": []}


def test_readiness_knows_every_migration_by_its_file_name() -> None:
    scripts = ScriptDirectory(str(Path(models.__file__).with_name("migrations")))
    assert _revisions() == {script.revision for script in scripts.walk_revisions()}
    assert scripts.get_heads() == [max(_revisions())]
