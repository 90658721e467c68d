"""An SDK's retry has no key: it gets the answer that was not heard, and never that of another request for the same."""

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
    """How many agents there are."""
    return len(good(caller.get("/v1/agents"))["data"])


def blocked(stage: Stage) -> int:
    """How many transactions wait for a lock."""
    with transaction(stage.workspace_id) as db:
        mine = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()"
        found: int = db.value(mine)
        return found


def test_an_sdk_s_retry_gets_the_answer_that_it_did_not_hear(caller: Caller, stage: Stage, clock: Clock) -> None:
    first = unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    clock.advance(ON_ITS_WAY_SECONDS)
    again = caller.post("/v1/agents", json=BODY, headers=RETRY)
    assert again.text == first.text
    assert again.headers["idempotent-replayed"] == "true"
    assert count(caller) == 1


def test_an_answer_that_was_heard_is_no_other_request_s(caller: Caller, stage: Stage) -> None:
    """Another one for the same, which was refused the first time, is done: two sessions of one agent are two."""
    first = good(caller.post("/v1/agents", json=BODY, headers=FIRST))
    second = good(caller.post("/v1/agents", json=BODY, headers=RETRY))
    assert first["id"] != second["id"]
    assert count(caller) == 2
    wait_for("both are forgotten", lambda: not kept(stage))


def test_a_retry_whose_client_hangs_up_as_well_does_nothing(caller: Caller, stage: Stage) -> None:
    """Whether it or the one that is heard is the first to see that the first try's answer may be lost."""
    first = unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    with ThreadPoolExecutor(1) as pool:
        hang_up(caller, "POST", "/v1/agents", RETRY, json=BODY)
        heard = pool.submit(caller.post, "/v1/agents", json=BODY, headers=RETRY)
        hang_up(caller, "POST", "/v1/agents", RETRY, json=BODY)
        assert heard.result().text == first.text
    wait_for("the server is done with them", lambda: not hanging(caller))
    assert count(caller) == 1


def hanging(caller: Caller) -> list[Any]:
    """The server's connections whose clients have hung up."""
    found = psutil.net_connections("tcp4")
    return [one for one in found if one.status == psutil.CONN_CLOSE_WAIT and one.laddr.port == caller.base_url.port]


def test_a_retry_waits_for_a_first_try_that_is_still_under_way(caller: Caller, stage: Stage, clock: Clock) -> None:
    session = caller.session()
    path, said = f"/v1/sessions/{session['id']}/events", {"events": [message("yes")]}
    with ThreadPoolExecutor(1) as pool:
        with transaction(stage.workspace_id) as db:
            db.rows("SELECT 1 FROM session WHERE id = %(id)s FOR UPDATE", id=session["id"])
            hang_up(caller, "POST", path, FIRST, json=said)
            wait_for("it waits for the session", lambda: blocked(stage) == 1)
            retried = pool.submit(caller.post, path, json=said, headers=RETRY)
            wait_for("its retry waits for it", lambda: blocked(stage) == 2)
        wait_for("it is done", lambda: kept(stage))
        clock.advance(ON_ITS_WAY_SECONDS)
        assert retried.result().headers["idempotent-replayed"] == "true"
    assert [event["type"] for event in caller.events(session["id"])].count("user.message") == 1


def test_each_of_two_retries_gets_an_answer_of_its_own_the_older_first(stage: Stage, clock: Clock) -> None:
    first, again = (Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=n) for n in (0, 1))

    def found() -> str | None:
        with transaction(stage.workspace_id) as db:
            answer = again.find(db)
            return answer and answer.text

    for said in ("older", "newer"):
        with transaction(stage.workspace_id) as db:
            first.keep(db, stage.principal, 200, said)
        clock.advance(1)
    clock.advance(ON_ITS_WAY_SECONDS)
    with ThreadPoolExecutor(1) as pool:
        with transaction(stage.workspace_id) as db:
            older = again.find(db)
            assert older
            assert older.text == "older"
            other = pool.submit(found)
            wait_for("it waits", lambda: blocked(stage) == 1)
        assert other.result() == "newer"


def test_an_answer_that_is_just_being_forgotten_is_not_given(stage: Stage, clock: Clock) -> None:
    first, again = (Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=n) for n in (0, 1))
    with transaction(stage.workspace_id) as db:
        first.keep(db, stage.principal, 200, "heard late")
    clock.advance(ON_ITS_WAY_SECONDS)

    def found() -> Answer | None:
        with transaction(stage.workspace_id) as db:
            return again.find(db)

    with ThreadPoolExecutor(1) as pool:
        with transaction(role="system") as db:
            db.rows("DELETE FROM answer WHERE id = %(id)s RETURNING id", id=kept(stage)[0].id)
            retried = pool.submit(found)
            wait_for("it waits", lambda: blocked(stage) == 1)
        assert retried.result() is None


def test_a_retry_that_was_not_heard_either_is_not_the_last(caller: Caller, stage: Stage, clock: Clock) -> None:
    first = unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    for _ in range(2):
        clock.advance(ON_ITS_WAY_SECONDS)
        offered = kept(stage)[0].offered_at
        hang_up(caller, "POST", "/v1/agents", RETRY, json=BODY)
        wait_for("it is given again", lambda: kept(stage)[0].offered_at != offered)  # noqa: B023 - called at once
    clock.advance(ON_ITS_WAY_SECONDS)
    assert caller.post("/v1/agents", json=BODY, headers=RETRY).text == first.text
    assert count(caller) == 1


def test_what_was_not_heard_is_known_for_ten_minutes(caller: Caller, stage: Stage, clock: Clock) -> None:
    unheard(caller, stage, "POST", "/v1/agents", json=BODY)
    clock.advance(601)
    good(caller.post("/v1/agents", json=BODY, headers=RETRY))
    assert count(caller) == 2


def test_what_others_are_answered_later_is_not_waited_for(stage: Stage) -> None:
    """Or a retry would wait for ever where many ask for the same."""
    first, again = (Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=n) for n in (0, 1))
    with transaction(stage.workspace_id) as db:
        asked_at = now(db)
    with transaction(stage.workspace_id) as db:
        first.keep(db, stage.principal, 200, "others'")
    with transaction(stage.workspace_id) as db:
        assert again.find(db, asked_at) is None
        with pytest.raises(OnItsWay):
            again.find(db)


def test_first_requests_for_the_same_do_not_wait_for_each_other(stage: Stage) -> None:
    first = Slip.of(stage.principal, "POST", "/v1/agents", b"{}", key=None, retry=0)
    with transaction(stage.workspace_id) as db, transaction(stage.workspace_id) as other:
        assert (first.find(db), first.find(other)) == (None, None)
