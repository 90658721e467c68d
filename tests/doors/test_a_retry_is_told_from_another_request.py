"""An SDK's retry has no key. It gets the answer that its client did not receive, and never the answer of an equal request."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from crashes.processes import wait_for
from doors.served import FIRST, MODEL, RETRY, Caller, good, hang_up, kept, message, unheard
from own_database import Clock
from rows.stage import Stage

from models.database.clock import now
from models.database.transactions import transaction
from models.workspace.idempotency import ON_ITS_WAY_SECONDS, Answer, OnItsWay, Slip

BODY = {"name": "A", "model": MODEL}


def count(caller: Caller) -> int:
    """Return the number of agents."""
    return len(good(caller.get("/v1/agents"))["data"])


def blocked(stage: Stage) -> int:
    """Return the number of transactions that wait for a lock."""
    waits = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()"
    with transaction(stage.workspace_id) as db:
        return int(db.value(waits))


def test_an_sdk_s_retry_gets_the_answer_that_it_did_not_receive(caller: Caller, stage: Stage, clock: Clock) -> None:
    first = unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    clock.advance(ON_ITS_WAY_SECONDS)
    again = caller.post("/v1/agents", json=BODY, headers=RETRY)
    assert again.text == first.text
    assert again.headers["idempotent-replayed"] == "true"
    assert count(caller) == 1


def test_a_received_answer_is_given_to_no_other_request(caller: Caller, stage: Stage) -> None:
    """An equal request whose first try was refused arrives as a retry, and still acts."""
    first = good(caller.post("/v1/agents", json=BODY, headers=FIRST))
    second = good(caller.post("/v1/agents", json=BODY, headers=RETRY))
    assert first["id"] != second["id"]
    assert count(caller) == 2
    wait_for("both answers are forgotten", lambda: not kept(stage))


def test_a_retry_whose_client_hangs_up_as_well_does_nothing(caller: Caller, stage: Stage) -> None:
    """Both before and after the retry that gets the answer."""
    first = unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    with ThreadPoolExecutor(1) as pool:
        hang_up(caller, "POST", "/v1/agents", RETRY, json=BODY)
        heard = pool.submit(caller.post, "/v1/agents", json=BODY, headers=RETRY)
        hang_up(caller, "POST", "/v1/agents", RETRY, json=BODY)
        assert heard.result().text == first.text
    wait_for("the server has closed these connections", lambda: not hanging(caller))
    assert count(caller) == 1


def hanging(caller: Caller) -> list[Any]:
    """Return the server's connections whose clients have hung up."""
    connections = psutil.net_connections("tcp4")
    return [c for c in connections if c.status == psutil.CONN_CLOSE_WAIT and c.laddr.port == caller.base_url.port]


def test_a_retry_waits_for_a_first_try_that_is_still_under_way(caller: Caller, stage: Stage, clock: Clock) -> None:
    session = caller.session()
    path, body = f"/v1/sessions/{session['id']}/events", {"events": [message("yes")]}
    with ThreadPoolExecutor(1) as pool:
        with transaction(stage.workspace_id) as db:
            db.rows("SELECT 1 FROM session WHERE id = %(id)s FOR UPDATE", id=session["id"])
            hang_up(caller, "POST", path, FIRST, json=body)
            wait_for("the first request waits for the session", lambda: blocked(stage) == 1)
            retried = pool.submit(caller.post, path, json=body, headers=RETRY)
            wait_for("the retry waits for the first request", lambda: blocked(stage) == 2)
        wait_for("the answer is stored", lambda: kept(stage))
        clock.advance(ON_ITS_WAY_SECONDS)
        assert retried.result().headers["idempotent-replayed"] == "true"
    assert [event["type"] for event in caller.events(session["id"])].count("user.message") == 1


def test_each_of_two_retries_gets_an_answer_of_its_own_the_older_first(stage: Stage, clock: Clock) -> None:
    first, again = (Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=n) for n in (0, 1))

    def find() -> str | None:
        with transaction(stage.workspace_id) as db:
            answer = again.find(db)
            return answer and answer.text

    for text in ("older", "newer"):
        with transaction(stage.workspace_id) as db:
            first.keep(db, stage.principal, 200, text)
        clock.advance(1)
    clock.advance(ON_ITS_WAY_SECONDS)
    with ThreadPoolExecutor(1) as pool:
        with transaction(stage.workspace_id) as db:
            older = again.find(db)
            assert older
            assert older.text == "older"
            other = pool.submit(find)
            wait_for("the other retry waits", lambda: blocked(stage) == 1)
        assert other.result() == "newer"


def test_an_answer_that_is_just_being_forgotten_is_not_given(stage: Stage, clock: Clock) -> None:
    first, again = (Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=n) for n in (0, 1))
    with transaction(stage.workspace_id) as db:
        first.keep(db, stage.principal, 200, "heard late")
    clock.advance(ON_ITS_WAY_SECONDS)

    def find() -> Answer | None:
        with transaction(stage.workspace_id) as db:
            return again.find(db)

    with ThreadPoolExecutor(1) as pool:
        with transaction(role="system") as db:
            db.rows("DELETE FROM answer WHERE id = %(id)s RETURNING id", id=kept(stage)[0].id)
            retried = pool.submit(find)
            wait_for("the retry waits", lambda: blocked(stage) == 1)
        assert retried.result() is None


def test_after_a_retry_whose_answer_is_lost_too_another_retry_gets_it(caller: Caller, stage: Stage, clock: Clock) -> None:
    first = unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    for _ in range(2):
        clock.advance(ON_ITS_WAY_SECONDS)
        offered = kept(stage)[0].offered_at
        hang_up(caller, "POST", "/v1/agents", RETRY, json=BODY)
        wait_for("the answer is offered again", lambda: kept(stage)[0].offered_at != offered)  # noqa: B023 - called at once
    clock.advance(ON_ITS_WAY_SECONDS)
    assert caller.post("/v1/agents", json=BODY, headers=RETRY).text == first.text
    assert count(caller) == 1


def test_an_answer_that_was_not_received_is_kept_for_ten_minutes(caller: Caller, stage: Stage, clock: Clock) -> None:
    unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    clock.advance(601)
    good(caller.post("/v1/agents", json=BODY, headers=RETRY))
    assert count(caller) == 2


def test_a_retry_does_not_wait_for_answers_that_came_after_it(stage: Stage) -> None:
    """Where many clients send equal requests, it would wait for ever."""
    first, again = (Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=n) for n in (0, 1))
    with transaction(stage.workspace_id) as db:
        retried_at = now(db)
    with transaction(stage.workspace_id) as db:
        first.keep(db, stage.principal, 200, "others'")
    with transaction(stage.workspace_id) as db:
        assert again.find(db, retried_at) is None
        with pytest.raises(OnItsWay):
            again.find(db)


def test_equal_first_requests_do_not_wait_for_each_other(stage: Stage) -> None:
    first = Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=0)
    with transaction(stage.workspace_id) as db, transaction(stage.workspace_id) as other:
        assert (first.find(db), first.find(other)) == (None, None)
