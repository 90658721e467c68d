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
"""Seconds after which a worker that is gone has lost its work."""
VERBS = {"poll": "offer_work", "ack": "answer", "heartbeat": "answer", "stop": "answer"}
DEATHS = [(act, boundary) for act, verb in VERBS.items() for boundary in of(verb)]
TRY = "x-stainless-retry-count"
"""By which the SDKs say how often they have asked already."""


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

    def request(self, act: str, tried: int = 0) -> dict[str, Any]:
        """What the SDKs would ask."""
        path = f"{self.work_path}/{self.work_id}/{act}" if act != "poll" else f"{self.work_path}/poll"
        query = {"expected_last_heartbeat": "NO_HEARTBEAT"} if act == "heartbeat" else {}
        body = {"force": True} if act == "stop" else {}
        said: dict[str, Any] = {"path": path, "query_string": query, "headers": {"x-api-key": self.secret, TRY: str(tried)}}
        return said | ({"method": "GET"} if act == "poll" else {"method": "POST", "json": body})

    def ask(self, act: str, tried: int = 0) -> TestResponse:
        """Ask, and hear the answer."""
        return self.app.test_client().open(**self.request(act, tried))

    def does(self, *acts: str) -> None:
        """Ask for these, one after the other, all of which must be good. It polls until there is something to do."""
        for act in acts:
            if act == "poll":
                found: Any = wait_for("work is offered", lambda: self.ask("poll").json)
                self.work_id = found["id"]
            else:
                answer = self.ask(act)
                assert answer.status_code == 200, answer.text

    def meets(self, act: str, boundary: str) -> None:
        """Ask a process that dies there, and hear nothing."""
        self.journey.armed.at(boundary)
        send_task("door.ask", self.request(act))
        self.journey.until_crashed()

    def posts_its_result(self) -> None:
        """The session goes on to its end."""
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
    """One who has not asked for anything yet."""
    return Worker(journey, flask_app)


def before(act: str) -> list[str]:
    """What a worker has done when it comes to this."""
    return list(VERBS)[: list(VERBS).index(act)]


@pytest.mark.parametrize(("act", "boundary"), DEATHS)
def test_a_request_that_is_sent_again_is_done_once(worker: Worker, act: str, boundary: str) -> None:
    """Each is answered the second time as it would have been the first time, and the work is done to its end."""
    worker.does(*before(act))
    if act == "stop":
        worker.posts_its_result()
    worker.meets(act, boundary)
    [row] = worker.rows()
    done = {
        "poll": row.offered_at,
        "ack": row.acknowledged_at,
        "heartbeat": row.heartbeat_at,
        "stop": row.stopped_at,
    }[act]
    assert bool(done) == (not boundary.endswith("before_commit"))
    if act == "poll":
        worker.does("poll")
    else:
        again = worker.ask(act, tried=1)
        assert again.status_code == 200, again.text
    worker.does(*list(VERBS)[len(before(act)) + 1 : -1])
    if act != "stop":
        worker.posts_its_result()
        worker.does("stop")
    assert [work.status for work in worker.rows()] == ["stopped"]


@pytest.mark.parametrize(("act", "boundary"), DEATHS)
def test_a_worker_that_never_heard_the_answer_is_replaced(worker: Worker, act: str, boundary: str) -> None:
    """It does not ask again. Whoever polls once its lease has run out serves the session, which is served once."""
    worker.does(*before(act))
    worker.meets(act, boundary)
    worker.journey.later(LEASE)
    worker.does("poll", "ack", "heartbeat")
    worker.posts_its_result()
    worker.does("stop")
    rows = worker.rows()
    assert {work.status for work in rows} == {"stopped"}
    stopped_early = act == "stop" and not boundary.endswith("before_commit")
    assert len(rows) == (2 if stopped_early else 1)
