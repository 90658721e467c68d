"""The process that takes a request may die before or after it has done it: sent again, it is done once and answered as it was."""

from typing import Any

import pytest
from audit.tampering import verified
from crashes.boundaries import of
from crashes.journey import EFFECT, Journey
from crashes.likeness import masked, rows
from crashes.requests import REQUESTS, SAME_DOOR, Asked, spelled, writing
from flask import Flask
from rows.stage import Stage
from werkzeug.test import TestResponse

from models.database import transactions

ANSWER = of("answer")
COMMITTED = "answer.after_commit"
"""Where each route's request dies: done, and not answered. The other boundaries are the door's own: one route shows them."""
KEY = {"idempotency-key": "k"}
RETRY = "x-stainless-retry-count"
ELSEWHERE = {"work.ack", "work.heartbeat", "work.stop"}
"""These routes' deaths are in test_a_door_of_work_can_crash.py."""


def test_no_route_that_writes_is_forgotten(flask_app: Flask) -> None:
    tested = {name.partition(" ")[0] for name in REQUESTS}
    assert tested | ELSEWHERE | SAME_DOOR == set(writing(flask_app))
    assert not tested & (ELSEWHERE | SAME_DOOR)


@pytest.mark.parametrize(
    ("name", "boundary"),
    [(name, COMMITTED) for name in REQUESTS] + [("events.send", boundary) for boundary in ANSWER if boundary != COMMITTED],
)
def test_a_request_sent_again_with_its_key_is_done_once(
    journey: Journey, flask_app: Flask, name: str, boundary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its effect is there with its answer or not at all, and in the end all is as in a workspace where nobody died."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)  # no worker goes on with what is prepared
    stage, peaceful = journey.stage, Stage()
    request, same = (spelled(flask_app, each, name, REQUESTS[name](each), **KEY) for each in (stage, peaceful))
    before = rows(stage.workspace_id)
    journey.someone_dies(boundary, "door.ask", request)
    left = rows(stage.workspace_id)
    again = ask(flask_app, request)
    after = rows(stage.workspace_id)
    assert before != after
    assert left == (before if boundary == "answer.before_commit" else after)
    assert masked(again.text) == masked(ask(flask_app, same).text)
    assert sorted(map(masked, after)) == sorted(map(masked, rows(peaceful.workspace_id)))
    assert verified(stage).intact


@pytest.mark.parametrize("boundary", ANSWER)
def test_a_session_that_an_sdk_creates_again_goes_its_way_once(journey: Journey, flask_app: Flask, boundary: str) -> None:
    """Without an idempotency key, the SDK's retry count identifies the retry. The first message is stored once."""
    agent = journey.stage.read(journey.stage.session(bash="always_allow"))
    said = {"type": "user.message", "content": [{"type": "text", "text": f"{EFFECT}\nthen\nsay Done."}]}
    body = {"agent": agent.agent_id, "environment_id": agent.environment_id, "max_turns": 3, "initial_events": [said]}
    answer = retried(journey, flask_app, "sessions.create", Asked({}, body), boundary)
    journey.session_id = answer["id"]
    seen = journey.until_idle()
    assert len(seen.of("user.message")) == 1
    assert journey.effects() == 1
    assert sum(row.startswith("session ") for row in rows(journey.stage.workspace_id)) == 2, "the first, and the one it asked for"


@pytest.mark.parametrize("boundary", ANSWER)
def test_a_decision_that_an_sdk_sends_again_lets_a_call_run_once(journey: Journey, flask_app: Flask, boundary: str) -> None:
    journey.begin(bash="always_ask").say(EFFECT, "then", "say Done.")
    asked = Asked({"approval_id": journey.until_asked().id}, {"result": "allow"})
    answer = retried(journey, flask_app, "approvals.decide", asked, boundary)
    assert answer["status"] == "allowed"
    seen = journey.until_idle()
    assert len(seen.of("user.tool_confirmation")) == 1
    assert journey.effects() == 1


def ask(flask_app: Flask, request: dict[str, Any]) -> TestResponse:
    """Ask, and hear a good answer."""
    answer = flask_app.test_client().open(**request)
    assert answer.status_code == 200, answer.text
    return answer


def retried(journey: Journey, flask_app: Flask, name: str, asked: Asked, boundary: str) -> dict[str, Any]:
    """What an SDK is answered that asks twice, since it has heard nothing the first time. From then on the beat beats."""
    request = spelled(flask_app, journey.stage, name, asked)
    first, again = (request | {"headers": request["headers"] | {RETRY: str(tried)}} for tried in (0, 1))
    journey.someone_dies(boundary, "door.ask", first)
    answer: dict[str, Any] = ask(flask_app, again).get_json()
    journey.later(6)
    return answer
