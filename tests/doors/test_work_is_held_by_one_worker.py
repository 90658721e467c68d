"""The work of a self-hosted environment is offered to one worker at a time, by leases on the database's clock."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from doors.served import Caller, bad, confirmation, good, key, message
from own_database import Clock
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.workspace.idempotency import StoredResponse


@dataclass
class Theirs:
    """A client of the work of a self-hosted environment."""

    caller: Caller
    id: str

    def path(self, work: dict[str, Any] | None = None, act: str = "") -> str:
        """Return the path of the work list, of one work item, or of an act on either."""
        return f"/v1/environments/{self.id}/work" + (f"/{work['id']}" if work else "") + (f"/{act}" if act else "")

    def session(self) -> str:
        """Start a session. Returns its id."""
        session_id: str = self.caller.session(environment_id=self.id)["id"]
        self.caller.say(session_id)
        return session_id

    def poll(self, **query: Any) -> Any:
        """Poll. Returns a work item or None."""
        answer = self.caller.get(self.path(act="poll"), params=query, headers={"anthropic-worker-id": "worker-1"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def beat(self, work: dict[str, Any], last: str = "NO_HEARTBEAT", **more: Any) -> Any:
        """Send a heartbeat. Returns the response."""
        return self.caller.post(self.path(work, "heartbeat"), params={"expected_last_heartbeat": last} | more)

    def stop(self, work: dict[str, Any], **body: Any) -> Any:
        """Stop a work item. Returns the response."""
        return self.caller.post(self.path(work, "stop"), json=body)


@pytest.fixture
def theirs(caller: Caller) -> Theirs:
    """A self-hosted environment."""
    return Theirs(caller, good(caller.post("/v1/environments", json={"name": "E", "config": {"type": "self_hosted"}}))["id"])


def test_without_work_a_poll_is_null(theirs: Theirs) -> None:
    assert theirs.poll() is None
    assert theirs.poll(block_ms=1) is None


def test_work_is_offered_once_acknowledged_renewed_and_stopped(theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    work = theirs.poll(block_ms=999)
    assert (work["data"], work["state"]) == ({"type": "session", "id": session_id}, "starting")
    assert theirs.poll() is None
    assert good(theirs.caller.post(theirs.path(work, "ack")))["acknowledged_at"]
    first = good(theirs.beat(work))
    assert (first["state"], first["lease_extended"], first["ttl_seconds"]) == ("active", True, 60)
    second = good(theirs.beat(work, first["last_heartbeat"], desired_ttl_seconds=90))
    assert second["ttl_seconds"] == 90
    stage.reply(session_id, say("Done."))
    assert good(theirs.stop(work, force=True))["state"] == "stopped"
    bad(theirs.stop(work, force=True), 409, "stopped")
    bad(theirs.caller.post(theirs.path(work, "ack")), 409, "stopped")
    assert good(theirs.beat(work, second["last_heartbeat"]))["lease_extended"] is False
    assert theirs.poll() is None


def test_work_that_is_not_acknowledged_in_time_is_offered_again(theirs: Theirs, clock: Clock) -> None:
    theirs.session()
    work = theirs.poll()
    clock.advance(6)
    assert theirs.poll(reclaim_older_than_ms=60_000) is None
    assert theirs.poll()["id"] == work["id"]
    good(theirs.caller.post(theirs.path(work, "ack")))
    clock.advance(6)
    assert theirs.poll() is None


@pytest.mark.parametrize("beats", [0, 1])
def test_an_expired_lease_goes_to_another_worker_and_the_first_worker_gets_a_412(theirs: Theirs, clock: Clock, beats: int) -> None:
    theirs.session()
    work = theirs.poll()
    good(theirs.caller.post(theirs.path(work, "ack")))
    last = good(theirs.beat(work))["last_heartbeat"] if beats else "NO_HEARTBEAT"
    clock.advance(59)
    assert theirs.poll() is None
    clock.advance(2)
    again = theirs.poll()
    assert (again["id"], again["latest_heartbeat_at"], again["acknowledged_at"]) == (work["id"], None, None)
    good(theirs.caller.post(theirs.path(again, "ack")))
    new = good(theirs.beat(again))["last_heartbeat"]
    answer = theirs.beat(work, last)
    bad(answer, 412, "expected_last_heartbeat")
    lease = answer.json()["error"]["details"]
    assert lease["error_code"] == "heartbeat_precondition_failed"
    assert lease["current_state"] == {"state": "active", "last_heartbeat": new, "lease_extended": False, "ttl_seconds": 60}
    good(theirs.beat(again, new))


def test_a_retried_heartbeat_gets_its_first_answer(theirs: Theirs) -> None:
    theirs.session()
    work = theirs.poll()
    headers = [{"x-stainless-retry-count": n} for n in "01"]
    path, query = theirs.path(work, "heartbeat"), {"expected_last_heartbeat": "NO_HEARTBEAT"}
    first, again = (good(theirs.caller.post(path, params=query, headers=header)) for header in headers)
    assert again == first
    query = {"expected_last_heartbeat": first["last_heartbeat"]}
    second, again = (good(theirs.caller.post(path, params=query, headers=header)) for header in headers)
    assert again == second != first


def test_heartbeats_store_no_responses(theirs: Theirs, stage: Stage) -> None:
    theirs.session()
    work = theirs.poll()
    headers = {"x-stainless-retry-count": "0"}
    last = "NO_HEARTBEAT"
    good(theirs.caller.post(theirs.path(work, "ack"), headers=headers))
    for _ in range(3):
        query = {"expected_last_heartbeat": last}
        last = good(theirs.caller.post(theirs.path(work, "heartbeat"), params=query, headers=headers))["last_heartbeat"]
    with transaction(stage.workspace_id) as db:
        assert [row.text for row in db.find(StoredResponse) if work["id"] in row.text] == []


def test_the_next_heartbeat_reports_a_graceful_stop(theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    work = theirs.poll()
    last = good(theirs.beat(work))["last_heartbeat"]
    assert good(theirs.stop(work))["state"] == "stopping"
    lease = good(theirs.beat(work, last))
    assert (lease["state"], lease["lease_extended"]) == ("stopping", False)
    good(theirs.stop(work, force=True))
    assert stage.read(session_id).status == "running"


def test_a_session_that_goes_on_after_its_worker_stopped_is_offered_again(theirs: Theirs, stage: Stage, clock: Clock) -> None:
    session_id = theirs.session()
    work = theirs.poll()
    stage.reply(session_id, call())
    good(theirs.stop(work, force=True))
    assert theirs.poll() is None
    clock.advance(1.1)
    anew = theirs.poll()
    assert anew["id"] != work["id"]
    assert anew["data"]["id"] == session_id


@pytest.mark.parametrize("stopping", [True, False])
def test_expired_work_that_was_stopping_or_has_nothing_to_do_is_not_offered(
    theirs: Theirs, stage: Stage, clock: Clock, *, stopping: bool
) -> None:
    session_id = theirs.session()
    work = theirs.poll()
    good(theirs.beat(work))
    if stopping:
        good(theirs.stop(work))
    stage.reply(session_id, say("Done."))
    clock.advance(61)
    assert theirs.poll() is None
    assert good(theirs.caller.get(theirs.path(work)))["state"] == "stopped"


def test_the_end_of_a_session_ends_its_work(theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    work = theirs.poll()
    last = good(theirs.beat(work))["last_heartbeat"]
    stage.reply(session_id, call())
    good(theirs.caller.post(f"/v1/sessions/{session_id}/archive"))
    assert good(theirs.beat(work, last))["state"] == "stopped"
    good(theirs.caller.delete(f"/v1/sessions/{session_id}"))
    bad(theirs.beat(work, last), 404)
    good(theirs.caller.delete(f"/v1/environments/{theirs.id}"))


def test_work_is_listed_counted_and_labelled(theirs: Theirs) -> None:
    for _ in range(2):
        theirs.session()
    assert [w["state"] for w in good(theirs.caller.get(theirs.path()))["data"]] == ["queued", "queued"]
    work = theirs.poll()
    counted = good(theirs.caller.get(theirs.path(act="stats")))
    assert (counted["depth"], counted["pending"], counted["oldest_queued_at"]) == (1, 1, work["created_at"])
    assert good(theirs.caller.post(theirs.path(work), json={"metadata": {"a": "1", "b": None}}))["metadata"] == {"a": "1"}
    page = good(theirs.caller.get(theirs.path(), params={"limit": 1}))
    assert good(theirs.caller.get(theirs.path(), params={"limit": 1, "page": page["next_page"]}))["data"][0]["id"] == work["id"]


def test_an_environment_that_is_not_self_hosted_has_no_work(caller: Caller) -> None:
    ours = Theirs(caller, caller.environment_id())
    bad(caller.get(ours.path(act="poll")), 400, "environment_id")
    assert good(caller.get(ours.path()))["data"] == []
    nowhere = Theirs(caller, "env_none")
    for path in (nowhere.path(), nowhere.path(act="poll"), nowhere.path(act="stats"), ours.path({"id": "work_none"})):
        bad(caller.get(path), 404)


def test_an_environment_s_type_does_not_change(theirs: Theirs) -> None:
    path = f"/v1/environments/{theirs.id}"
    bad(theirs.caller.post(path, json={"config": {"type": "cloud"}}), 400, "config.type")
    assert good(theirs.caller.post(path, json={"name": "F", "config": {"type": "self_hosted"}}))["name"] == "F"


def test_a_key_with_the_scope_environment_serves_its_work_and_does_nothing_else(api: str, theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    with Caller(api, key(stage, "read", "environment")) as worker:
        served = Theirs(worker, theirs.id)
        work = served.poll()
        good(worker.post(served.path(work, "ack")))
        good(served.beat(work))
        [tool_call] = stage.reply(session_id, call())
        bad(worker.tell(session_id, message()), 403, "sessions")
        bad(worker.tell(session_id, confirmation(tool_call.id)), 403, "approvals")
        bad(worker.post("/v1/sessions", json={}), 403, "sessions")
        good(theirs.caller.tell(session_id, confirmation(tool_call.id)))
        good(worker.tell(session_id, {"type": "user.tool_result", "tool_use_id": tool_call.id, "content": [say("ok")]}))
        good(served.stop(work, force=True))
    with Caller(api, key(stage, "read", "sessions")) as backend:
        bad(backend.get(served.path(act="poll")), 403, "environment")
    with Caller(api, key(stage, "read", "agents")) as other:
        bad(other.tell(session_id, {"type": "user.tool_result", "tool_use_id": tool_call.id}), 403, "sessions or environment")


def test_of_many_polls_and_heartbeats_at_once_one_succeeds(theirs: Theirs) -> None:
    theirs.session()
    with ThreadPoolExecutor(8) as pool:
        polled = [work for work in pool.map(lambda _: theirs.poll(), range(8)) if work]
        [work] = polled
        good(theirs.caller.post(theirs.path(work, "ack")))
        beats = list(pool.map(lambda _: theirs.beat(work).status_code, range(8)))
    assert sorted(beats) == [200] + [412] * 7
