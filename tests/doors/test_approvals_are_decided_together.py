"""Several decisions at once: all of them or none, with what each came to."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from doors.served import Caller, bad, good
from doors.waiting import approval_of, asked
from own_database import Clock
from rows.stage import Stage, call

from models.session.tool_call import ToolCall

PATH = "/v1/approvals/decisions"


@pytest.fixture
def waiting(caller: Caller, stage: Stage) -> list[ToolCall]:
    """Three calls that wait in two sessions."""
    return [*asked(caller, stage, call(command="ls"), call(command="pwd")), *asked(caller, stage, call(command="date"))]


def each(caller: Caller, waiting: list[ToolCall], **said: Any) -> list[dict[str, Any]]:
    """A decision for each of the calls."""
    return [{"approval_id": approval_of(caller, found)["id"], "result": "allow"} | said for found in waiting]


def outcomes(error: dict[str, Any]) -> list[str]:
    """What each of the decisions came to."""
    return [item["outcome"] for item in error["details"]["decisions"]]


def statuses(stage: Stage, waiting: list[ToolCall]) -> list[str]:
    """Of the calls, as they are now."""
    return [stage.get(ToolCall, found.id).status for found in waiting]


def test_all_are_decided_over_sessions_in_one_answer(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    said = each(caller, waiting)
    said[1] |= {"result": "deny", "deny_message": "No."}
    data = good(caller.post(PATH, json={"decisions": said[::-1]}))["data"]
    assert [(item["approval_id"], item["outcome"]) for item in data] == [(one["approval_id"], "decided") for one in said[::-1]]
    assert [item["approval"]["status"] for item in data] == ["allowed", "denied", "allowed"]
    assert statuses(stage, waiting) == ["queued", "denied", "queued"]
    for found in waiting:
        stage.check(found.session_id)


def test_the_same_again_is_repeated(caller: Caller, waiting: list[ToolCall]) -> None:
    said = each(caller, waiting)
    good(caller.post(PATH, json={"decisions": said[:1]}))
    data = good(caller.post(PATH, json={"decisions": said}))["data"]
    assert [item["outcome"] for item in data] == ["repeated", "decided", "decided"]


def test_one_that_somebody_decided_otherwise_refuses_all(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    said = each(caller, waiting)
    good(caller.post(f"/v1/approvals/{said[1]['approval_id']}/decision", json={"result": "deny"}))
    before = [caller.events(found.session_id, include="approvals") for found in waiting]
    error = bad(caller.post(PATH, json={"decisions": said}), 409, "decisions.1: ", "None of the decisions was made.")
    assert outcomes(error) == ["would_decide", "refused", "not_tried"]
    assert "already denied" in error["details"]["decisions"][1]["message"]
    assert error["winner"]["decision"] == {"result": "deny"}
    assert statuses(stage, waiting) == ["asked", "denied", "asked"]
    assert [caller.events(found.session_id, include="approvals") for found in waiting] == before


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
def test_one_that_cannot_be_refuses_all(
    caller: Caller, stage: Stage, waiting: list[ToolCall], wrong: dict[str, Any], status: int, words: str
) -> None:
    said = each(caller, waiting)
    said[1] |= wrong
    error = bad(caller.post(PATH, json={"decisions": said}), status, words)
    assert outcomes(error) == ["would_decide", "refused", "not_tried"]
    assert statuses(stage, waiting) == ["asked"] * 3


def test_what_an_earlier_one_ends_cannot_be_decided_by_a_later_one(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    said = each(caller, waiting[:2])
    said[0] |= {"result": "deny", "interrupt": True}
    error = bad(caller.post(PATH, json={"decisions": said}), 409, "decisions.1: ")
    assert outcomes(error) == ["would_decide", "refused"]
    assert statuses(stage, waiting) == ["asked"] * 3


def test_one_that_is_late_refuses_all_and_is_expired_there_and_then(
    caller: Caller, stage: Stage, waiting: list[ToolCall], clock: Clock
) -> None:
    said = each(caller, waiting)
    good(caller.post(f"/v1/approvals/{said[0]['approval_id']}/extend", json={"seconds": 200_000}))
    clock.advance(86_401)
    error = bad(caller.post(PATH, json={"decisions": said}), 409, "has passed")
    assert outcomes(error) == ["would_decide", "refused", "not_tried"]
    assert error["winner"]["status"] == "expired"
    assert statuses(stage, waiting) == ["asked", "expired", "asked"]
    assert approval_of(caller, waiting[1])["status"] == "expired"


@pytest.mark.parametrize(
    ("count", "field"),
    [(0, "decisions: "), (101, "decisions: "), (-1, "decisions: ")],
    ids=["none", "too many", "one twice"],
)
def test_a_list_that_cannot_be_is_named(caller: Caller, waiting: list[ToolCall], count: int, field: str) -> None:
    one = each(caller, waiting[:1])
    many = one * 2 if count < 0 else [{"approval_id": f"appr_{n}", "result": "allow"} for n in range(count)]
    bad(caller.post(PATH, json={"decisions": many}), 400, field)


def test_another_workspace_s_approval_is_unknown(api: str, caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    from doors.served import key

    with Caller(api, key(Stage())) as stranger:
        bad(stranger.post(PATH, json={"decisions": each(caller, waiting[:1])}), 404, "was not found")
    assert statuses(stage, waiting) == ["asked"] * 3


def test_deciding_needs_the_scope(api: str, caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    from doors.served import key

    with Caller(api, key(stage, "read", "sessions")) as other:
        bad(other.post(PATH, json={"decisions": each(caller, waiting)}), 403, "approvals")


def test_two_lists_in_opposite_orders_end_one_after_the_other(api: str, caller: Caller, stage: Stage) -> None:
    """Design rule 2: sessions are locked in the order of their ids, so neither waits for the other for ever."""
    calls = [found for _ in range(6) for found in asked(caller, stage)]
    said = each(caller, calls)
    secret, start = caller.headers["x-api-key"], threading.Barrier(4)

    def send(n: int) -> int:
        with Caller(api, secret) as one:
            start.wait()
            return one.post(PATH, json={"decisions": said[:: -1 if n % 2 else 1]}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(send, range(4))) == [200] * 4
    assert statuses(stage, calls) == ["queued"] * 6
