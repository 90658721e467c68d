"""The inbox, and the one decision that each approval gets."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from doors.served import Caller, bad, confirmation, good
from doors.waiting import approval_of, asked, lose
from own_database import Clock
from rows.stage import Stage, call

from models.session.tool_call.row import ToolCall


def test_an_approval_shows_what_would_run(caller: Caller, waiting: ToolCall) -> None:
    approval = approval_of(caller, waiting)
    assert approval["input"] == {"command": "ls -l"}
    assert approval["input_canonical"] == '{"command":"ls -l"}'
    assert approval["input_sha256"] == waiting.input_sha256
    assert (approval["type"], approval["kind"]) == ("approval", "tool_call")
    assert (approval["status"], approval["decision"]) == ("pending", None)
    assert good(caller.get(f"/v1/approvals/{approval['id']}")) == approval


@pytest.mark.parametrize(
    ("decision", "status", "call_status"),
    [
        ({"result": "allow"}, "allowed", "queued"),
        ({"result": "deny"}, "denied", "denied"),
        ({"result": "deny", "deny_message": "Use git."}, "denied", "denied"),
        ({"result": "deny", "interrupt": True}, "denied", "denied"),
    ],
)
def test_a_decision_is_stored_and_is_an_event(
    caller: Caller, stage: Stage, waiting: ToolCall, decision: dict[str, Any], status: str, call_status: str
) -> None:
    approval = approval_of(caller, waiting)
    path = f"/v1/approvals/{approval['id']}/decision"
    decided = good(caller.post(path, json=decision | {"expected_input_sha256": approval["input_sha256"]}))
    assert (decided["status"], decided["decision"]) == (status, decision)
    assert decided["decided_by"].startswith("api_key:")
    assert stage.get(ToolCall, waiting.id).status == call_status
    [event] = caller.events(waiting.session_id, types="user.tool_confirmation")
    assert (event["id"], event["result"], event["tool_use_id"]) == (decided["event_id"], decision["result"], waiting.id)
    assert good(caller.post(path, json=decision)) == decided


def test_another_decision_is_409_with_the_winner(caller: Caller, waiting: ToolCall) -> None:
    approval = approval_of(caller, waiting)
    path = f"/v1/approvals/{approval['id']}/decision"
    good(caller.post(path, json={"result": "deny"}))
    error = bad(caller.post(path, json={"result": "allow"}), 409, "denied")
    assert error["winner"]["decision"] == {"result": "deny"}
    bad(caller.tell(waiting.session_id, confirmation(waiting.id)), 409, "denied")


def test_a_decision_on_another_input_is_refused(caller: Caller, waiting: ToolCall) -> None:
    approval = approval_of(caller, waiting)
    decision = {"result": "allow", "expected_input_sha256": "0" * 64}
    error = bad(caller.post(f"/v1/approvals/{approval['id']}/decision", json=decision), 409, "expected_input_sha256")
    assert error["winner"] == {"input_sha256": approval["input_sha256"]}
    assert approval_of(caller, waiting) == approval


UNFIT: list[dict[str, Any]] = [
    {},
    {"result": "yes"},
    {"result": ["allow"]},
    {"result": None},
    {"outcome": "happened"},
    {"outcome": "rerun", "result": "allow"},
    {"outcome": "maybe"},
    {"outcome": "give_up", "interrupt": True},
    {"outcome": "rerun", "scope": "session"},
    {"outcome": "rerun", "updated_input": {"command": "ls"}},
    {"result": "allow", "expected_input_sha256": "sha256:0"},
    {"outcome": "rerun"},
]
"""Decisions that do not fit the approval of a call."""


def test_a_decision_that_does_not_fit_decides_nothing(caller: Caller, waiting: ToolCall, subtests: pytest.Subtests) -> None:
    approval = approval_of(caller, waiting)
    for decision in UNFIT:
        with subtests.test(str(decision)):
            bad(caller.post(f"/v1/approvals/{approval['id']}/decision", json=decision), 400)
            assert approval_of(caller, waiting) == approval


def test_a_late_decision_expires_the_approval_there_and_then(caller: Caller, stage: Stage, waiting: ToolCall, clock: Clock) -> None:
    approval = approval_of(caller, waiting)
    clock.advance(86_401)
    error = bad(caller.post(f"/v1/approvals/{approval['id']}/decision", json={"result": "allow"}), 409, "expired")
    assert (error["winner"]["status"], error["winner"]["decided_by"]) == ("expired", "system:sweep.expire_approvals")
    assert good(caller.get(f"/v1/approvals/{approval['id']}"))["status"] == "expired"
    assert stage.get(ToolCall, waiting.id).status == "expired"
    bad(caller.tell(waiting.session_id, confirmation(waiting.id)), 409, "expired")


def test_of_fifty_decisions_at_once_one_wins(caller: Caller, api: str, waiting: ToolCall) -> None:
    path = f"/v1/approvals/{approval_of(caller, waiting)['id']}/decision"
    secret, start = caller.headers["x-api-key"], threading.Barrier(50)

    def decide(n: int) -> tuple[str, int]:
        decision = {"result": "allow"} if n % 2 else {"result": "deny", "deny_message": f"{n}"}
        with Caller(api, secret) as one:
            start.wait()
            return decision["result"], one.post(path, json=decision).status_code

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(decide, range(50)))
    assert {status for _, status in answers} == {200, 409}
    winners = {result for result, status in answers if status == 200}
    assert len(winners) == 1
    # All allows are the same decision. Each denial has its own message, so only one denial can win.
    assert sum(status == 200 for _, status in answers) == (25 if winners == {"allow"} else 1)


def test_an_unknown_outcome_is_settled_by_its_own_approval(caller: Caller, stage: Stage, waiting: ToolCall) -> None:
    good(caller.tell(waiting.session_id, confirmation(waiting.id)))
    lose(stage, waiting)
    approval = approval_of(caller, waiting)
    assert approval["kind"] == "unknown_outcome"
    path = f"/v1/approvals/{approval['id']}/decision"
    bad(caller.post(path, json={"result": "allow"}), 400, "outcome")
    # A repeated allow belongs to the first approval, and does not settle the outcome.
    good(caller.tell(waiting.session_id, confirmation(waiting.id)))
    assert stage.get(ToolCall, waiting.id).status == "unknown"
    decided = good(caller.post(path, json={"outcome": "happened", "result": "it printed 42"}))
    assert decided["status"] == "answered"
    assert stage.result(waiting) == "it printed 42"


@pytest.mark.parametrize(
    ("decision", "status"),
    [
        ({"outcome": "rerun"}, "queued"),
        ({"outcome": "give_up", "deny_message": "Never mind."}, "done"),
        ({"outcome": "happened", "result": [{"type": "text", "text": "42"}]}, "done"),
        ({"result": "deny"}, "done"),
    ],
)
def test_each_answer_to_an_unknown_outcome(caller: Caller, stage: Stage, waiting: ToolCall, decision: Any, status: str) -> None:
    good(caller.tell(waiting.session_id, confirmation(waiting.id)))
    lose(stage, waiting)
    good(caller.post(f"/v1/approvals/{approval_of(caller, waiting)['id']}/decision", json=decision))
    assert stage.get(ToolCall, waiting.id).status == status


def test_the_inbox_is_over_all_sessions_oldest_first_and_paged(caller: Caller, stage: Stage) -> None:
    call_ids = [tool_call.id for _ in range(3) for tool_call in asked(caller, stage, call(), call())]
    first = good(caller.get("/v1/approvals", params={"limit": 4, "status": "pending"}))
    rest = good(caller.get("/v1/approvals", params={"limit": 4, "status": "pending", "page": first["next_page"]}))
    assert sorted(a["tool_use_id"] for a in first["data"] + rest["data"]) == sorted(call_ids)
    times = [a["created_at"] for a in first["data"] + rest["data"]]
    assert times == sorted(times)
    newest = good(caller.get("/v1/approvals", params={"order": "desc"}))["data"]
    assert [a["created_at"] for a in newest] == times[::-1]
    assert good(caller.get("/v1/approvals", params={"status": "denied"}))["data"] == []
