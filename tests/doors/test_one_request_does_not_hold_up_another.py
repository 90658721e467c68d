"""Requests share a process and streams share a hub. A waiting request delays no other, and a closed stream is forgotten."""

import threading
import time
from collections.abc import Iterator

import pytest
from doors.served import Caller, good, key
from flask.testing import FlaskClient
from rows.stage import Stage

from api import create_app
from api.streams.hub import hub
from models.audit.principal import system
from models.database.transactions import transaction
from models.flow.lock import lock


def test_a_request_that_waits_for_a_lock_leaves_the_others_alone(caller: Caller, api: str, stage: Stage) -> None:
    session = caller.session()
    with transaction(stage.workspace_id) as db:
        lock(db, session["id"], system("test", db.workspace_id))
        with Caller(api, caller.headers["x-api-key"]) as other:
            waiting = threading.Thread(target=other.post, args=(f"/v1/sessions/{session['id']}/archive",))
            waiting.start()
            before = time.monotonic()
            for _ in range(5):
                good(caller.get("/v1/agents"))
            assert waiting.is_alive(), "it still waits"
            assert time.monotonic() - before < 1.5
            waiting.join()


@pytest.fixture
def inside(clean_database: object, redis_url: str) -> Iterator[FlaskClient]:
    """A client of the application in this process."""
    app = create_app()
    with app.test_client() as client:
        yield client


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_closed_stream_is_forgotten(inside: FlaskClient, stage: Stage, method: str) -> None:
    headers = {"x-api-key": key(stage)}
    session_id = stage.session()
    answer = inside.open(f"/v1/sessions/{session_id}/events/stream", method=method, headers=headers, buffered=False)
    assert answer.status_code == 200
    if method == "GET":
        assert hub().of(session_id)
    answer.close()
    assert not hub().of(session_id)
