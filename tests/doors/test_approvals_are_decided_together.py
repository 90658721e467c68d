"""Several decisions in one request: all are made or none, and the response has the outcome of each."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from doors.waiting import approval_of, asked
from own_database import Clock
from rows.stage import Stage, call

from models.session.tool_call.row import ToolCall

PATH = "/v1/approvals/decisions"


@pytest.fixture
def waiting(caller: Caller, stage: Stage) -> list[ToolCall]:
    """Three waiting calls in two sessions."""
    return [*asked(caller, stage, call(command="ls"), call(command="pwd")), *asked(caller, stage, call(command="date"))]


def each(caller: Caller, waiting: list[ToolCall]) -> list[dict[str, Any]]:
    """Return a decision that allows, for each call."""
    return [{"approval_id": approval_of(caller, tool_call)["id"], "result": "allow"} for tool_call in waiting]


def outcomes(error: dict[str, Any]) -> list[str]:
    """Return the outcome of each decision."""
    return [item["outcome"] for item in error["details"]["decisions"]]


def statuses(stage: Stage, waiting: list[ToolCall]) -> list[str]:
    """Return the present status of each call."""
    return [stage.get(ToolCall, tool_call.id).status for tool_call in waiting]


def test_all_are_decided_over_sessions_in_one_answer(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    decisions = each(caller, waiting)
    decisions[1] |= {"result": "deny", "deny_message": "No."}
    data = good(caller.post(PATH, json={"decisions": decisions[::-1]}))["data"]
    assert [item["approval_id"] for item in data] == [one["approval_id"] for one in decisions[::-1]]
    assert [item["outcome"] for item in data] == ["decided"] * 3
    assert [item["approval"]["status"] for item in data] == ["allowed", "denied", "allowed"]
    assert statuses(stage, waiting) == ["queued", "denied", "queued"]
    for tool_call in waiting:
        stage.check(tool_call.session_id)


def test_a_session_says_once_what_still_waits(caller: Caller, stage: Stage) -> None:
    calls = asked(caller, stage, *(call(command=command) for command in ("ls", "pwd", "date")))
    before = len(stage.events(calls[0].session_id, "session.status_idle"))
    good(caller.post(PATH, json={"decisions": each(caller, calls[:2])}))
    idles = stage.events(calls[0].session_id, "session.status_idle")[before:]
    assert [idle.body["stop_reason"]["event_ids"] for idle in idles] == [[calls[2].id]]


def test_the_same_again_is_repeated(caller: Caller, waiting: list[ToolCall]) -> None:
    decisions = each(caller, waiting)
    good(caller.post(PATH, json={"decisions": decisions[:1]}))
    data = good(caller.post(PATH, json={"decisions": decisions}))["data"]
    assert [item["outcome"] for item in data] == ["repeated", "decided", "decided"]


def test_one_approval_with_another_decision_refuses_all(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    decisions = each(caller, waiting)
    good(caller.post(f"/v1/approvals/{decisions[1]['approval_id']}/decision", json={"result": "deny"}))
    before = [caller.events(tool_call.session_id, include="approvals") for tool_call in waiting]
    error = bad(caller.post(PATH, json={"decisions": decisions}), 409, "decisions.1: ", "None of the decisions was made.")
    assert outcomes(error) == ["would_decide", "refused", "not_tried"]
    assert "already denied" in error["details"]["decisions"][1]["message"]
    assert error["winner"]["decision"] == {"result": "deny"}
    assert statuses(stage, waiting) == ["asked", "denied", "asked"]
    assert [caller.events(tool_call.session_id, include="approvals") for tool_call in waiting] == before


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ({"result": "allow", "scope": "session", "match": "read(x)"}, 400, "decisions.1.match: "),
        ({"result": "deny", "scope": "session"}, 400, "decisions.1.scope: "),
        ({"result": "perhaps"}, 400, "decisions.1.result: "),
        ({"result": "allow", "expected_input_sha256": "0" * 64}, 409, "decisions.1: expected_input_sha256"),
        ({"result": "allow", "approval_id": "appr_none"}, 404, "decisions.1: approval 'appr_none' was not found"),
    ],
)
def test_one_invalid_decision_refuses_all(
    caller: Caller, stage: Stage, waiting: list[ToolCall], wrong: dict[str, Any], status: int, words: str
) -> None:
    decisions = each(caller, waiting)
    decisions[1] |= wrong
    error = bad(caller.post(PATH, json={"decisions": decisions}), status, words)
    assert outcomes(error) == ["would_decide", "refused", "not_tried"]
    assert statuses(stage, waiting) == ["asked"] * 3


def test_an_approval_that_an_earlier_decision_ends_refuses_all(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    decisions = each(caller, waiting[:2])
    decisions[0] |= {"result": "deny", "interrupt": True}
    error = bad(caller.post(PATH, json={"decisions": decisions}), 409, "decisions.1: ")
    assert outcomes(error) == ["would_decide", "refused"]
    assert statuses(stage, waiting) == ["asked"] * 3


def test_one_late_decision_refuses_all_and_expires_its_approval(
    caller: Caller, stage: Stage, waiting: list[ToolCall], clock: Clock
) -> None:
    decisions = each(caller, waiting)
    good(caller.post(f"/v1/approvals/{decisions[0]['approval_id']}/extend", json={"seconds": 200_000}))
    clock.advance(86_401)
    error = bad(caller.post(PATH, json={"decisions": decisions}), 409, "has passed")
    assert outcomes(error) == ["would_decide", "refused", "not_tried"]
    assert error["winner"]["status"] == "expired"
    assert statuses(stage, waiting) == ["asked", "expired", "asked"]
    assert approval_of(caller, waiting[1])["status"] == "expired"


@pytest.mark.parametrize("ids", [[], range(101), [0, 0]], ids=["none", "too many", "one twice"])
def test_a_list_that_is_empty_too_long_or_repeats_an_approval_is_refused(caller: Caller, ids: Any) -> None:
    decisions = [{"approval_id": f"appr_{n}", "result": "allow"} for n in ids]
    bad(caller.post(PATH, json={"decisions": decisions}), 400, "decisions: ")


def test_another_workspace_s_approval_is_unknown(api: str, caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:

    with Caller(api, key(Stage())) as stranger:
        bad(stranger.post(PATH, json={"decisions": each(caller, waiting[:1])}), 404, "was not found")
    assert statuses(stage, waiting) == ["asked"] * 3


def test_deciding_needs_the_scope(api: str, caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:

    with Caller(api, key(stage, "read", "sessions")) as other:
        bad(other.post(PATH, json={"decisions": each(caller, waiting)}), 403, "approvals")


def test_lists_in_opposite_orders_do_not_deadlock(api: str, caller: Caller, stage: Stage) -> None:
    calls = [tool_call for _ in range(6) for tool_call in asked(caller, stage)]
    decisions = each(caller, calls)
    secret, start = caller.headers["x-api-key"], threading.Barrier(4)

    def send(n: int) -> int:
        with Caller(api, secret) as one:
            start.wait()
            return one.post(PATH, json={"decisions": decisions[:: -1 if n % 2 else 1]}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(send, range(4))) == [200] * 4
    assert statuses(stage, calls) == ["queued"] * 6
