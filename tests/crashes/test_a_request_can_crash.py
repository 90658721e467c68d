"""The process that takes a request may die before or after its commit. Sent again, the request is done once, with one response."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from audit.tampering import verified
from crashes.boundaries import of
from crashes.journey import EFFECT, Journey
from crashes.likeness import masked, rows
from crashes.writing_requests import REQUESTS, SAME_DOOR, RequestParts, request_for, writing
from flask import Flask
from rows.stage import Stage
from werkzeug.test import TestResponse

from models.database import transactions

RESPOND = of("respond")
KEY = {"idempotency-key": "k"}
RETRY = "x-stainless-retry-count"
ELSEWHERE = {"work.ack", "work.heartbeat", "work.stop"}
"""These routes' deaths are in test_a_door_of_work_can_crash.py."""


def test_no_route_that_writes_is_forgotten(flask_app: Flask) -> None:
    tested = {name.partition(" ")[0] for name in REQUESTS}
    assert tested | ELSEWHERE | SAME_DOOR == set(writing(flask_app))
    assert not tested & (ELSEWHERE | SAME_DOOR)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_whose_response_is_lost_is_done_once(stage: Stage, flask_app: Flask, name: str) -> None:
    """Sent again with its key. For its rows, a death after the commit is the same: see the next test."""
    before, left, after = sent_again(stage, flask_app, name, partial(ask, flask_app))
    assert before != left == after


@pytest.mark.parametrize("boundary", RESPOND)
def test_a_request_whose_process_dies_is_done_once(journey: Journey, flask_app: Flask, boundary: str) -> None:
    """Sent again with its key. The effect is stored with the response or not at all, by code that all routes share."""
    before, left, after = sent_again(journey.stage, flask_app, "events.send", partial(journey.kill_at, boundary, "door.ask"))
    assert before != after
    assert left == (before if boundary == "respond.before_commit" else after)


@pytest.mark.parametrize("boundary", RESPOND)
def test_a_session_that_an_sdk_creates_again_is_created_and_runs_once(journey: Journey, flask_app: Flask, boundary: str) -> None:
    """The retry has no key, but the SDK's count of retries. The first message is answered."""
    agent = journey.stage.read(journey.stage.session(bash="always_allow"))
    message = {"type": "user.message", "content": [{"type": "text", "text": f"{EFFECT}\nthen\nsay Done."}]}
    body = {"agent": agent.agent_id, "environment_id": agent.environment_id, "max_turns": 3, "initial_events": [message]}
    body = retried(journey, flask_app, "sessions.create", RequestParts({}, body), boundary)
    journey.session_id = body["id"]
    seen = journey.until_idle()
    assert len(seen.of("user.message")) == 1
    assert journey.effects() == 1
    assert sum(row.startswith("session ") for row in rows(journey.stage.workspace_id)) == 2, (
        "the one with the agent, and the created one"
    )


@pytest.mark.parametrize("boundary", RESPOND)
def test_a_decision_that_an_sdk_sends_again_lets_a_call_run_once(journey: Journey, flask_app: Flask, boundary: str) -> None:
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    parts = RequestParts({"approval_id": journey.until_asked().id}, {"result": "allow"})
    body = retried(journey, flask_app, "approvals.decide", parts, boundary)
    assert body["status"] == "allowed"
    seen = journey.until_idle()
    assert len(seen.of("user.tool_confirmation")) == 1
    assert journey.effects() == 1


def sent_again(
    stage: Stage, flask_app: Flask, name: str, fail: Callable[[dict[str, Any]], object]
) -> tuple[list[str], list[str], list[str]]:
    """Send a request by `fail`, without a response, and again with its key. Returns all rows before, between and after.

    In the end the rows are like those of a workspace where the first request succeeds.
    """
    peaceful = Stage()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "_send", lambda _: None)  # no worker goes on with what is prepared
        request, same = (request_for(flask_app, each, name, REQUESTS[name](each), **KEY) for each in (stage, peaceful))
        before = rows(stage.workspace_id)
        fail(request)
        left = rows(stage.workspace_id)
        again = ask(flask_app, request)
        after = rows(stage.workspace_id)
        assert masked(again.text) == masked(ask(flask_app, same).text)
    assert sorted(map(masked, after)) == sorted(map(masked, rows(peaceful.workspace_id)))
    assert verified(stage).intact
    return before, left, after


def ask(flask_app: Flask, request: dict[str, Any]) -> TestResponse:
    """Send the request, which succeeds. Returns the response."""
    response = flask_app.test_client().open(**request)
    assert response.status_code == 200, response.text
    return response


def retried(journey: Journey, flask_app: Flask, name: str, parts: RequestParts, boundary: str) -> dict[str, Any]:
    """The body of the response to an SDK's retry, whose first request died. From then on the beat beats."""
    request = request_for(flask_app, journey.stage, name, parts)
    first, again = (request | {"headers": request["headers"] | {RETRY: str(retries)}} for retries in (0, 1))
    journey.kill_at(boundary, "door.ask", first)
    body: dict[str, Any] = ask(flask_app, again).get_json()
    journey.later(6)
    return body
