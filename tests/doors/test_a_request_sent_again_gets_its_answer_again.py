"""Idempotency: for 24 hours, by key; without a key, an SDK's retry gets the answer of its first request."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from doors.served import FIRST, MODEL, RETRY, Caller, bad, confirmation, good, key, message
from own_database import Clock
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.workspace.idempotency import StoredResponse
from workers.sweeps import deleting

BODY = {"name": "A", "model": MODEL}


def count(caller: Caller) -> int:
    """Return the number of agents."""
    return len(good(caller.get("/v1/agents"))["data"])


def test_the_same_key_gives_the_same_answer_byte_for_byte(caller: Caller) -> None:
    first = caller.post("/v1/agents", json=BODY, headers={"idempotency-key": "k"})
    again = caller.post("/v1/agents", json=BODY, headers={"idempotency-key": "k"})
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["request-id"] != first.headers["request-id"]
    assert count(caller) == 1


def test_another_body_under_the_key_is_refused(caller: Caller) -> None:
    good(caller.post("/v1/agents", json=BODY, headers={"idempotency-key": "k"}))
    bad(caller.post("/v1/agents", json=BODY | {"name": "B"}, headers={"idempotency-key": "k"}), 409, "Idempotency-Key")
    assert count(caller) == 1


def test_a_key_belongs_to_its_principal_and_its_path(caller: Caller, api: str, stage: Stage) -> None:
    headers = {"idempotency-key": "k"}
    agent = good(caller.post("/v1/agents", json=BODY, headers=headers))
    changed = good(caller.post(f"/v1/agents/{agent['id']}", json={"name": "B"}, headers=headers))
    assert changed["version"] == 2
    with Caller(api, key(stage)) as other:
        good(other.post("/v1/agents", json=BODY, headers=headers))
    assert count(caller) == 2


def test_only_what_succeeded_is_kept(caller: Caller) -> None:
    agent = caller.agent()
    path, headers = f"/v1/agents/{agent['id']}", {"idempotency-key": "k"}
    bad(caller.post(path, json={"name": "C", "version": 2}, headers=headers), 409)
    good(caller.post(path, json={"name": "B"}))
    assert good(caller.post(path, json={"name": "C", "version": 2}, headers=headers))["version"] == 3


def test_a_key_is_forgotten_after_a_day(caller: Caller, clock: Clock, stage: Stage) -> None:
    headers = {"idempotency-key": "k"}
    good(caller.post("/v1/agents", json=BODY, headers=headers))
    clock.advance(24 * 3600 - 60)
    good(caller.post("/v1/agents", json=BODY, headers=headers))
    assert count(caller) == 1
    clock.advance(120)
    good(caller.post("/v1/agents", json=BODY | {"name": "B"}, headers=headers))
    assert count(caller) == 2
    clock.advance(25 * 3600)
    deleting.delete_old()
    with transaction(stage.workspace_id) as db:
        assert len(db.find(StoredResponse)) == 0


def test_concurrent_duplicates_act_once_and_answer_alike(caller: Caller, api: str) -> None:
    secret = caller.headers["x-api-key"]

    def post(_: int) -> bytes:
        with Caller(api, secret, **{"idempotency-key": "k"}) as one:
            answer = one.post("/v1/agents", json=BODY)
            good(answer)
            return answer.content

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(post, range(8)))) == 1
    assert count(caller) == 1


@pytest.mark.parametrize("count", ["", "x", "-1", "²"])
def test_a_malformed_retry_count_counts_as_no_retry(caller: Caller, count: str) -> None:
    good(caller.post("/v1/agents", json=BODY, headers=[(b"x-stainless-retry-count", count.encode())]))


def test_a_retried_allow_gets_the_first_answer_and_never_runs_the_call_again(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    [tool_call] = stage.reply(session["id"], call())
    body: dict[str, Any] = {"events": [confirmation(tool_call.id)]}
    path = f"/v1/sessions/{session['id']}/events"
    first = caller.post(path, json=body, headers=FIRST)
    assert stage.claim_call(tool_call)
    again = caller.post(path, json=body, headers=RETRY)
    assert again.text == first.text
    # A client that marks no retries gets the same event, because the same decision again is a no-op.
    assert good(caller.post(path, json=body)) == good(again)


def test_a_deleted_session_s_delete_sent_again_is_answered_again(caller: Caller) -> None:
    session = caller.session()
    path = f"/v1/sessions/{session['id']}"
    gone = {"id": session["id"], "type": "session_deleted"}
    assert good(caller.delete(path, headers=FIRST)) == gone
    assert good(caller.delete(path, headers=RETRY)) == gone
    bad(caller.delete(path), 404)
    bad(caller.tell(session["id"], message()), 404)
