"""An SDK's retry has no key. It gets the response of the request that it repeats, and is refused if several can be meant."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from crashes.processes import wait_for
from doors.served import FIRST, MODEL, RETRY, Caller, bad, good, message
from own_database import Clock
from rows.stage import Stage

from models.database.transactions import transaction
from models.workspace.idempotency import Slip

BODY: dict[str, Any] = {"name": "A", "model": MODEL}


def count(caller: Caller) -> int:
    """Return the number of agents."""
    return len(good(caller.get("/v1/agents"))["data"])


def blocked(stage: Stage) -> int:
    """Return the number of transactions that wait for a lock."""
    waits = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()"
    with transaction(stage.workspace_id) as db:
        return int(db.value(waits))


def test_every_retry_gets_the_response_of_its_first_try(caller: Caller) -> None:
    first = caller.post("/v1/agents", json=BODY, headers=FIRST)
    for retries in "12":
        again = caller.post("/v1/agents", json=BODY, headers={"x-stainless-retry-count": retries})
        assert again.content == first.content
        assert again.headers["idempotent-replayed"] == "true"
    assert count(caller) == 1


def test_a_retry_whose_first_try_never_arrived_acts_once(caller: Caller) -> None:
    assert good(caller.post("/v1/agents", json=BODY, headers=RETRY)) == good(caller.post("/v1/agents", json=BODY, headers=RETRY))
    assert count(caller) == 1


def test_equal_first_tries_are_requests_of_their_own(caller: Caller) -> None:
    for _ in range(2):
        good(caller.post("/v1/agents", json=BODY, headers=FIRST))
    assert count(caller) == 2


def test_a_retry_of_one_of_several_equal_requests_is_refused(caller: Caller) -> None:
    for _ in range(2):
        good(caller.post("/v1/agents", json=BODY, headers=FIRST))
    bad(caller.post("/v1/agents", json=BODY, headers=RETRY), 409, "Idempotency-Key", "Nothing was done")
    assert count(caller) == 2


def test_a_retry_of_a_request_that_cannot_act_twice_gets_the_newest_response(caller: Caller) -> None:
    path = f"/v1/agents/{caller.agent()['id']}/archive"
    for _ in range(2):
        archived = good(caller.post(path, json={}, headers=FIRST))
    assert good(caller.post(path, json={}, headers=RETRY)) == archived


def test_a_retry_never_says_that_a_workspace_is_halted_which_is_not(caller: Caller) -> None:
    halt = {"json": {"reason": "x"}}
    assert good(caller.post("/v1/halt", headers=FIRST, **halt))["halted"]
    good(caller.delete("/v1/halt"))
    assert good(caller.post("/v1/halt", headers=RETRY, **halt))["halted"]
    assert good(caller.get("/v1/halt"))["halted"]


@pytest.mark.parametrize("other", [{"path": "/v1/environments"}, {"body": BODY | {"name": "B"}}])
def test_a_retry_gets_no_response_of_another_request(caller: Caller, other: dict[str, Any]) -> None:
    first = caller.post("/v1/agents", json=BODY, headers=FIRST)
    parts: dict[str, Any] = {"path": "/v1/agents", "body": {"name": "E", "config": {"type": "cloud"}}} | other
    second = caller.post(parts["path"], json=parts["body"], headers=RETRY)
    assert good(second)["id"] != good(first)["id"]
    assert "idempotent-replayed" not in second.headers


def test_a_retry_is_known_for_ten_minutes(caller: Caller, clock: Clock) -> None:
    good(caller.post("/v1/agents", json=BODY, headers=FIRST))
    clock.advance(601)
    good(caller.post("/v1/agents", json=BODY, headers=RETRY))
    assert count(caller) == 2


def test_a_retry_waits_for_a_first_try_that_is_still_in_progress(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    path, body = f"/v1/sessions/{session['id']}/events", {"events": [message("yes")]}
    with ThreadPoolExecutor(2) as pool:
        with transaction(stage.workspace_id) as db:
            db.rows("SELECT 1 FROM session WHERE id = %(id)s FOR UPDATE", id=session["id"])
            first = pool.submit(caller.post, path, json=body, headers=FIRST)
            wait_for("the first try waits for the session", lambda: blocked(stage) == 1)
            retried = pool.submit(caller.post, path, json=body, headers=RETRY)
            wait_for("the retry waits for the first try", lambda: blocked(stage) == 2)
        assert retried.result().content == first.result().content
        assert retried.result().headers["idempotent-replayed"] == "true"
    assert [event["type"] for event in caller.events(session["id"])].count("user.message") == 1


def test_equal_first_tries_do_not_wait_for_each_other(stage: Stage) -> None:
    first = Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=0)
    with transaction(stage.workspace_id) as db, transaction(stage.workspace_id) as other:
        assert (first.find(db), first.find(other)) == (None, None)
