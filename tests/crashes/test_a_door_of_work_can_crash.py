"""The process that takes a worker's poll, ack, heartbeat or stop may die before or after its commit."""

from typing import Any

import pytest
from crashes.boundaries import of
from crashes.journey import Journey, bash, send_task
from crashes.processes import wait_for
from doors.served import key
from flask import Flask
from rows.stage import say
from werkzeug.test import TestResponse

from models.database.transactions import transaction
from models.session.work import Work

LEASE = 61
"""Seconds after which a dead worker has lost its work."""
VERBS = {"poll": "offer_work", "ack": "renew_work", "heartbeat": "renew_work", "stop": "respond"}
DEATHS = [(act, boundary) for act, verb in VERBS.items() for boundary in of(verb)]
TRY = "x-stainless-retry-count"
"""The header in which SDKs count their retries."""


class Worker:
    """The worker of a self-hosted environment, and the session that it serves, which waits for the result of one call."""

    def __init__(self, journey: Journey, app: Flask) -> None:
        self.journey, self.app = journey, app
        self.secret = key(journey.stage, "read", "environment")
        journey.begin(self_hosted=True, bash="always_allow").say(bash("true"), "then", "say Done.")
        seen = journey.until(lambda seen: seen.session.status == "waiting")
        self.call_id = seen.calls[0].id
        self.work_path = f"/v1/environments/{seen.session.environment_id}/work"
        self.work_id = ""

    def request(self, act: str, retries: int = 0) -> dict[str, Any]:
        """The request of the SDKs, as arguments of Flask's test client."""
        path = f"{self.work_path}/{self.work_id}/{act}" if act != "poll" else f"{self.work_path}/poll"
        query = {"expected_last_heartbeat": "NO_HEARTBEAT"} if act == "heartbeat" else {}
        body = {"force": True} if act == "stop" else {}
        request: dict[str, Any] = {"path": path, "query_string": query, "headers": {"x-api-key": self.secret, TRY: str(retries)}}
        return request | ({"method": "GET"} if act == "poll" else {"method": "POST", "json": body})

    def ask(self, act: str, retries: int = 0) -> TestResponse:
        """Send the request. Returns the response."""
        return self.app.test_client().open(**self.request(act, retries))

    def sends(self, *acts: str) -> None:
        """Send these requests, one after the other, all of which succeed. Poll until work is offered."""
        for act in acts:
            if act == "poll":
                work: Any = wait_for("work is offered", lambda: self.ask("poll").json)
                self.work_id = work["id"]
            else:
                response = self.ask(act)
                assert response.status_code == 200, response.text

    def dies_at(self, act: str, boundary: str) -> None:
        """Send the request to a process that dies at the boundary, without a response."""
        self.journey.armed.at(boundary)
        send_task("door.ask", self.request(act))
        self.journey.until_crashed()

    def posts_its_result(self) -> None:
        """Post the call's result, with which the session goes on to its end."""
        result = {"type": "user.tool_result", "tool_use_id": self.call_id, "content": [say("ok")]}
        self.journey.stage.send(self.journey.session_id, result)
        seen = self.journey.until_idle()
        assert seen.session.stop_reason == {"type": "end_turn"}
        assert len(seen.of("user.tool_result")) == 1

    def rows(self) -> list[Work]:
        """The session's work, the oldest first."""
        with transaction(self.journey.stage.workspace_id) as db:
            return db.find(Work, "WHERE session_id = %(session_id)s ORDER BY id", session_id=self.journey.session_id)


@pytest.fixture
def worker(journey: Journey, flask_app: Flask) -> Worker:
    """A worker that has sent no request yet."""
    return Worker(journey, flask_app)


def before(act: str) -> list[str]:
    """The requests that a worker sends before this one."""
    return list(VERBS)[: list(VERBS).index(act)]


@pytest.mark.parametrize(("act", "boundary"), DEATHS)
def test_a_request_that_is_sent_again_is_done_once(worker: Worker, act: str, boundary: str) -> None:
    """The retry gets the response that the first request would have got, and the work is done to its end."""
    worker.sends(*before(act))
    if act == "stop":
        worker.posts_its_result()
    worker.dies_at(act, boundary)
    [row] = worker.rows()
    done = {
        "poll": row.offered_at,
        "ack": row.acknowledged_at,
        "heartbeat": row.heartbeat_at,
        "stop": row.stopped_at,
    }[act]
    assert bool(done) == (not boundary.endswith("before_commit"))
    if act == "poll":
        worker.sends("poll")
    else:
        again = worker.ask(act, retries=1)
        assert again.status_code == 200, again.text
    worker.sends(*list(VERBS)[len(before(act)) + 1 : -1])
    if act != "stop":
        worker.posts_its_result()
        worker.sends("stop")
    assert [work.status for work in worker.rows()] == ["stopped"]


@pytest.mark.parametrize("act", VERBS)
def test_a_worker_that_never_got_the_response_is_replaced(worker: Worker, act: str) -> None:
    """The worker sends nothing again. The next worker that polls after the lease serves the session, which is served once.

    A request that dies before its commit changes nothing.
    """
    worker.sends(*before(act))
    worker.dies_at(act, f"{VERBS[act]}.after_commit")
    worker.journey.later(LEASE)
    worker.sends("poll", "ack", "heartbeat")
    worker.posts_its_result()
    worker.sends("stop")
    rows = worker.rows()
    assert {work.status for work in rows} == {"stopped"}
    assert len(rows) == (2 if act == "stop" else 1)
