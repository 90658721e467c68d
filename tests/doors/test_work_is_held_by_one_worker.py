"""The work of a self-hosted environment: offered to one worker at a time, by leases on the database's clock."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from own_database import Clock
from rows.stage import Stage, call, say


@dataclass
class Theirs:
    """A self-hosted environment, as its worker sees it."""

    caller: Caller
    id: str

    def path(self, work: dict[str, Any] | None = None, act: str = "") -> str:
        """An address."""
        return f"/v1/environments/{self.id}/work" + (f"/{work['id']}" if work else "") + (f"/{act}" if act else "")

    def session(self) -> str:
        """A running session."""
        found = self.caller.session(environment_id=self.id)
        self.caller.say(found["id"])
        session_id: str = found["id"]
        return session_id

    def poll(self, **query: Any) -> Any:
        """What there is."""
        answer = self.caller.get(self.path(act="poll"), params=query, headers={"anthropic-worker-id": "worker-1"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def beat(self, work: dict[str, Any], last: str = "NO_HEARTBEAT", **more: Any) -> Any:
        """A heartbeat's answer."""
        return self.caller.post(self.path(work, "heartbeat"), params={"expected_last_heartbeat": last} | more)

    def stop(self, work: dict[str, Any], **body: Any) -> Any:
        """A stop's answer."""
        return self.caller.post(self.path(work, "stop"), json=body)


@pytest.fixture
def theirs(caller: Caller) -> Theirs:
    """A self-hosted environment."""
    return Theirs(caller, good(caller.post("/v1/environments", json={"name": "E", "config": {"type": "self_hosted"}}))["id"])


def test_nothing_to_do_is_null(theirs: Theirs) -> None:
    assert theirs.poll() is None
    assert theirs.poll(block_ms=1) is None


def test_work_is_offered_once_acknowledged_renewed_and_stopped(theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    found = theirs.poll(block_ms=999)
    assert (found["data"], found["state"]) == ({"type": "session", "id": session_id}, "starting")
    assert theirs.poll() is None
    assert good(theirs.caller.post(theirs.path(found, "ack")))["acknowledged_at"]
    first = good(theirs.beat(found))
    assert (first["state"], first["lease_extended"], first["ttl_seconds"]) == ("active", True, 60)
    second = good(theirs.beat(found, first["last_heartbeat"], desired_ttl_seconds=90))
    assert second["ttl_seconds"] == 90
    stage.reply(session_id, say("Done."))
    assert good(theirs.stop(found, force=True))["state"] == "stopped"
    bad(theirs.stop(found, force=True), 409, "stopped")
    bad(theirs.caller.post(theirs.path(found, "ack")), 409, "stopped")
    assert good(theirs.beat(found, second["last_heartbeat"]))["lease_extended"] is False
    assert theirs.poll() is None


def test_work_that_is_not_acknowledged_in_time_is_offered_again(theirs: Theirs, clock: Clock) -> None:
    theirs.session()
    found = theirs.poll()
    clock.advance(6)
    assert theirs.poll(reclaim_older_than_ms=60_000) is None
    assert theirs.poll()["id"] == found["id"]
    good(theirs.caller.post(theirs.path(found, "ack")))
    clock.advance(6)
    assert theirs.poll() is None


@pytest.mark.parametrize("beats", [0, 1])
def test_a_lapsed_lease_goes_to_another_worker_and_the_first_is_told(theirs: Theirs, clock: Clock, beats: int) -> None:
    theirs.session()
    found = theirs.poll()
    good(theirs.caller.post(theirs.path(found, "ack")))
    last = good(theirs.beat(found))["last_heartbeat"] if beats else "NO_HEARTBEAT"
    clock.advance(59)
    assert theirs.poll() is None
    clock.advance(2)
    again = theirs.poll()
    assert (again["id"], again["latest_heartbeat_at"], again["acknowledged_at"]) == (found["id"], None, None)
    good(theirs.caller.post(theirs.path(again, "ack")))
    new = good(theirs.beat(again))["last_heartbeat"]
    answer = theirs.beat(found, last)
    bad(answer, 412, "expected_last_heartbeat")
    lease = answer.json()["error"]["details"]
    assert lease["error_code"] == "heartbeat_precondition_failed"
    assert lease["current_state"] == {"state": "active", "last_heartbeat": new, "lease_extended": False, "ttl_seconds": 60}
    good(theirs.beat(again, new))


def test_a_heartbeat_that_is_sent_again_gets_its_own_answer(theirs: Theirs) -> None:
    theirs.session()
    found = theirs.poll()
    headers = [{"x-stainless-retry-count": n} for n in "01"]
    path, query = theirs.path(found, "heartbeat"), {"expected_last_heartbeat": "NO_HEARTBEAT"}
    first, again = (good(theirs.caller.post(path, params=query, headers=header)) for header in headers)
    assert again == first
    query = {"expected_last_heartbeat": first["last_heartbeat"]}
    assert good(theirs.caller.post(path, params=query, headers=headers[1])) != first


def test_a_graceful_stop_is_told_by_the_next_heartbeat(theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    found = theirs.poll()
    last = good(theirs.beat(found))["last_heartbeat"]
    assert good(theirs.stop(found))["state"] == "stopping"
    told = good(theirs.beat(found, last))
    assert (told["state"], told["lease_extended"]) == ("stopping", False)
    good(theirs.stop(found, force=True))
    assert stage.read(session_id).status == "running"


def test_a_session_that_goes_on_without_its_worker_is_offered_anew(theirs: Theirs, stage: Stage, clock: Clock) -> None:
    session_id = theirs.session()
    found = theirs.poll()
    stage.reply(session_id, call())
    good(theirs.stop(found, force=True))
    assert theirs.poll() is None
    clock.advance(1.1)
    anew = theirs.poll()
    assert anew["id"] != found["id"]
    assert anew["data"]["id"] == session_id


@pytest.mark.parametrize("asked", [True, False])
def test_lapsed_work_that_was_to_stop_or_has_nothing_to_do_is_not_offered(
    theirs: Theirs, stage: Stage, clock: Clock, *, asked: bool
) -> None:
    session_id = theirs.session()
    found = theirs.poll()
    good(theirs.beat(found))
    if asked:
        good(theirs.stop(found))
    stage.reply(session_id, say("Done."))
    clock.advance(61)
    assert theirs.poll() is None
    assert good(theirs.caller.get(theirs.path(found)))["state"] == "stopped"


def test_the_end_of_a_session_ends_its_work(theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    found = theirs.poll()
    last = good(theirs.beat(found))["last_heartbeat"]
    stage.reply(session_id, call())
    good(theirs.caller.post(f"/v1/sessions/{session_id}/archive"))
    assert good(theirs.beat(found, last))["state"] == "stopped"
    good(theirs.caller.delete(f"/v1/sessions/{session_id}"))
    bad(theirs.beat(found, last), 404)
    good(theirs.caller.delete(f"/v1/environments/{theirs.id}"))


def test_work_is_listed_counted_and_labelled(theirs: Theirs) -> None:
    for _ in range(2):
        theirs.session()
    assert [w["state"] for w in good(theirs.caller.get(theirs.path()))["data"]] == ["queued", "queued"]
    found = theirs.poll()
    counted = good(theirs.caller.get(theirs.path(act="stats")))
    assert (counted["depth"], counted["pending"], counted["oldest_queued_at"]) == (1, 1, found["created_at"])
    assert good(theirs.caller.post(theirs.path(found), json={"metadata": {"a": "1", "b": None}}))["metadata"] == {"a": "1"}
    page = good(theirs.caller.get(theirs.path(), params={"limit": 1}))
    assert good(theirs.caller.get(theirs.path(), params={"limit": 1, "page": page["next_page"]}))["data"][0]["id"] == found["id"]


def test_what_is_not_self_hosted_has_no_work(caller: Caller) -> None:
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


def test_an_environment_key_serves_and_does_nothing_else(api: str, theirs: Theirs, stage: Stage) -> None:
    session_id = theirs.session()
    with Caller(api, key(stage, "read", "environment")) as worker:
        served = Theirs(worker, theirs.id)
        found = served.poll()
        good(worker.post(served.path(found, "ack")))
        good(served.beat(found))
        [asked] = stage.reply(session_id, call())
        message = {"type": "user.message", "content": [say("Hi.")]}
        confirmation = {"type": "user.tool_confirmation", "tool_use_id": asked.id, "result": "allow"}
        bad(worker.tell(session_id, message), 403, "sessions")
        bad(worker.tell(session_id, confirmation), 403, "approvals")
        bad(worker.post("/v1/sessions", json={}), 403, "sessions")
        good(theirs.caller.tell(session_id, confirmation))
        good(worker.tell(session_id, {"type": "user.tool_result", "tool_use_id": asked.id, "content": [say("ok")]}))
        good(served.stop(found, force=True))
    with Caller(api, key(stage, "read", "sessions")) as backend:
        bad(backend.get(served.path(act="poll")), 403, "environment")
    with Caller(api, key(stage, "read", "agents")) as other:
        bad(other.tell(session_id, {"type": "user.tool_result", "tool_use_id": asked.id}), 403, "sessions or environment")


def test_of_many_that_ask_at_once_one_has_it(theirs: Theirs) -> None:
    theirs.session()
    with ThreadPoolExecutor(8) as pool:
        polled = [found for found in pool.map(lambda _: theirs.poll(), range(8)) if found]
        [found] = polled
        good(theirs.caller.post(theirs.path(found, "ack")))
        beats = list(pool.map(lambda _: theirs.beat(found).status_code, range(8)))
    assert sorted(beats) == [200] + [412] * 7
