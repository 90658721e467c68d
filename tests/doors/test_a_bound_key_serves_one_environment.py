"""A key that is bound to an environment does what that environment's worker does, and nothing else."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from doors.reading import stream
from doors.served import KEYLESS, Caller, bad, confirmation, good, message
from rows.stage import Stage, call, say

from api import create_app
from api.door import pages
from models.database.transactions import transaction
from models.errors import Invalid
from models.workspace import key_lookup
from models.workspace.api_key import ApiKey, NewKey

WORKERS = {
    "GET /v1/environments/<environment_id>/work/poll",
    "POST /v1/environments/<environment_id>/work/<work_id>/ack",
    "POST /v1/environments/<environment_id>/work/<work_id>/heartbeat",
    "POST /v1/environments/<environment_id>/work/<work_id>/stop",
    "GET /v1/sessions/<session_id>",
    "GET /v1/sessions/<session_id>/events",
    "GET /v1/sessions/<session_id>/events/stream",
    "POST /v1/sessions/<session_id>/events",
}


@dataclass
class Place:
    """A self-hosted environment with a running session."""

    id: str
    session_id: str

    @property
    def work(self) -> str:
        """The path of the environment's work."""
        return f"/v1/environments/{self.id}/work"

    @property
    def session(self) -> str:
        """The path of the session."""
        return f"/v1/sessions/{self.session_id}"


def place(caller: Caller) -> Place:
    """Create a self-hosted environment with a running session."""
    environment = good(caller.post("/v1/environments", json={"name": "E", "config": {"type": "self_hosted"}}))["id"]
    session_id = caller.session(environment_id=environment)["id"]
    caller.say(session_id)
    return Place(environment, session_id)


def bound(stage: Stage, environment_id: str, **more: Any) -> tuple[ApiKey, str]:
    """Create a key that is bound to an environment. Returns its row and secret."""
    with transaction(stage.workspace_id) as db:
        return ApiKey.create(db, NewKey("worker", environment_id=environment_id, **more))


@pytest.fixture
def ours(caller: Caller) -> Place:
    """The environment of the bound key."""
    return place(caller)


@pytest.fixture
def worker(api: str, stage: Stage, ours: Place) -> Iterator[Caller]:
    """A client with the bound key."""
    with Caller(api, bound(stage, ours.id)[1]) as client:
        yield client


def result(tool_use_id: str) -> dict[str, Any]:
    """Return a `user.tool_result` event."""
    return {"type": "user.tool_result", "tool_use_id": tool_use_id, "content": [say("ok")]}


def test_it_serves_its_environment_from_poll_to_stop(worker: Caller, caller: Caller, stage: Stage, ours: Place) -> None:
    work = good(worker.get(f"{ours.work}/poll"))
    good(worker.post(f"{ours.work}/{work['id']}/ack"))
    good(worker.post(f"{ours.work}/{work['id']}/heartbeat"))
    with stream(worker, ours.session_id) as events:
        [tool_call] = stage.reply(ours.session_id, call())
        good(caller.tell(ours.session_id, confirmation(tool_call.id)))
        while events.next().event != "user.tool_confirmation":
            pass
    assert good(worker.get(ours.session))["id"] == ours.session_id
    assert tool_call.id in {event["id"] for event in worker.events(ours.session_id)}
    good(worker.tell(ours.session_id, result(tool_call.id)))
    good(worker.post(f"{ours.work}/{work['id']}/stop", json={"force": True}))


def test_it_opens_no_other_route(worker: Caller, ours: Place) -> None:
    closed = 0
    known = {"environment_id": ours.id, "session_id": ours.session_id}
    app = create_app()
    for rule in app.url_map.iter_rules():
        if pages.is_page(rule.endpoint):
            continue  # pages take no key
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            if rule.rule in KEYLESS or f"{method} {rule.rule}" in WORKERS:
                continue
            path = re.sub(r"<(\w+)>", lambda name: known.get(name[1], "none_1"), rule.rule)
            response = worker.request(method, path)
            assert response.status_code == 403, response.text
            assert f"bound to environment {ours.id}" in response.json()["error"]["message"]  # in both formats of errors
            closed += 1
    assert closed > 25


def test_it_neither_decides_nor_sends_messages(worker: Caller, stage: Stage, ours: Place) -> None:
    [tool_call] = stage.reply(ours.session_id, call())
    bad(worker.tell(ours.session_id, confirmation(tool_call.id)), 403, "approvals")
    bad(worker.tell(ours.session_id, result(tool_call.id), confirmation(tool_call.id)), 403, "approvals")
    bad(worker.tell(ours.session_id, message()), 403, "sessions")
    bad(worker.tell(ours.session_id, {"type": "user.interrupt"}), 403, "sessions")


def test_another_environment_is_closed_to_it(worker: Caller, caller: Caller, stage: Stage) -> None:
    theirs = place(caller)
    [tool_call] = stage.reply(theirs.session_id, call())
    good(caller.tell(theirs.session_id, confirmation(tool_call.id)))
    work = good(caller.get(f"{theirs.work}/poll"))
    bad(worker.get(f"{theirs.work}/poll"), 403, "bound")
    for act in ("ack", "heartbeat", "stop"):
        bad(worker.post(f"{theirs.work}/{work['id']}/{act}"), 403, "bound")
    for path in (theirs.session, f"{theirs.session}/events", f"{theirs.session}/events/stream"):
        bad(worker.get(path), 404, theirs.session_id)
    bad(worker.tell(theirs.session_id, result(tool_call.id)), 404, theirs.session_id)
    assert good(caller.get(f"{theirs.work}/{work['id']}"))["state"] == "starting"


def test_another_environment_s_work_is_not_found_under_its_own(worker: Caller, caller: Caller, ours: Place) -> None:
    theirs = place(caller)
    work = good(caller.get(f"{theirs.work}/poll"))
    for act in ("ack", "heartbeat", "stop"):
        bad(worker.post(f"{ours.work}/{work['id']}/{act}"), 404, work["id"])


@pytest.mark.parametrize("session_id", ["sesn_none", "sesn_%00", "sesn_%ED%A0%80", "%F0%9F%90%A2"])
def test_an_unknown_or_malformed_session_id_is_not_found(worker: Caller, session_id: str) -> None:
    bad(worker.get(f"/v1/sessions/{session_id}"), 404)


def test_a_key_is_bound_to_a_self_hosted_environment_of_its_workspace(caller: Caller, stage: Stage, ours: Place) -> None:
    for wrong in (caller.environment_id(), "env_none"):
        with pytest.raises(Invalid, match="environment"):
            bound(stage, wrong)
    with pytest.raises(Invalid, match="environment"):
        bound(Stage(), ours.id)


def test_a_bound_key_has_the_scopes_of_a_worker_and_no_others(stage: Stage, ours: Place) -> None:
    assert bound(stage, ours.id)[0].scopes == ["read", "environment"]
    for more in ({"read", "environment", "approvals"}, {"sessions"}, set()):
        with pytest.raises(Invalid, match="scopes"):
            bound(stage, ours.id, scopes=frozenset(more))


def test_its_key_ends_with_the_environment(api: str, caller: Caller, stage: Stage) -> None:
    environment = good(caller.post("/v1/environments", json={"name": "E", "config": {"type": "self_hosted"}}))["id"]
    row, secret = bound(stage, environment)
    good(caller.delete(f"/v1/environments/{environment}"))
    with transaction(stage.workspace_id) as db:
        assert db.get_one(ApiKey, row.id).revoked_at
    key_lookup.forget()
    assert key_lookup.authenticate(secret, None) is None
