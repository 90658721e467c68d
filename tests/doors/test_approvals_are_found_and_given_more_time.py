"""The filters of approvals, the fields of a pending approval, and extended deadlines."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from doors.served import Caller, bad, good
from doors.waiting import approval_of, asked, decide, secretive
from own_database import Clock
from rows.stage import Stage

from models.flow.decide.deadlines import remind_due
from models.session.tool_call.row import ToolCall


def listed(caller: Caller, **query: Any) -> list[str]:
    """Return the call ids of the approvals that match these filters."""
    return [a["tool_use_id"] for a in good(caller.get("/v1/approvals", params=query))["data"]]


def at(text: str) -> datetime:
    """Parse a time of a response."""
    return datetime.fromisoformat(text)


def test_each_filter_finds_its_own(caller: Caller, stage: Stage) -> None:
    [first], second = asked(caller, stage), secretive(caller, stage)
    decide(caller, first, result="deny")
    approval = approval_of(caller, second)
    for query, calls in (
        ({"status": "pending"}, [second.id]),
        ({"status": "denied"}, [first.id]),
        ({"session_id": first.session_id}, [first.id]),
        ({"agent_id": approval["agent_id"]}, [second.id]),
        ({"tool": "bash"}, [first.id]),
        ({"tool": "nosuch"}, []),
        ({"kind": "tool_call"}, [first.id, second.id]),
        ({"kind": "unknown_outcome"}, []),
        ({"expires_at[lt]": approval["expires_at"]}, [first.id]),
        ({"order": "desc"}, [second.id, first.id]),
    ):
        assert listed(caller, **query) == calls, query


@pytest.mark.parametrize(
    "query", ["kind=doubt", "tool=%00", "expires_at[lt]=soon", "expires_at[gt]=2026-01-01T00:00:00Z", "reveal=1"]
)
def test_an_invalid_filter_is_named(caller: Caller, query: str) -> None:
    bad(caller.get(f"/v1/approvals?{query}"), 400, query.partition("=")[0])


def test_a_pending_approval_says_what_a_grant_would_cover_and_what_its_deadline_does(caller: Caller, stage: Stage) -> None:
    [tool_call] = asked(caller, stage)
    approval = approval_of(caller, tool_call)
    assert approval["covers"]["exact"] == "only this exact input of bash"
    assert approval["covers"]["tool"].startswith("every call of bash (beside a rule that denies or asks about commands: only")
    assert (approval["on_timeout"], approval["grant"], approval["decided_input"]) == ("deny", None, None)
    assert at(approval["remind_at"]) > at(approval["created_at"])


def test_a_reminder_is_in_the_approval_and_among_the_events_of_approvals(caller: Caller, stage: Stage, clock: Clock) -> None:
    [tool_call] = asked(caller, stage)
    clock.advance(3600)
    assert remind_due(stage.workspace_id, tool_call.session_id) == 1
    approval = approval_of(caller, tool_call)
    assert approval["remind_at"] is None
    assert approval["reminded_at"] is not None
    [event] = [e for e in caller.events(tool_call.session_id, include="approvals") if e["type"] == "approval.reminded"]
    assert (event["approval_id"], event["tool"]) == (approval["id"], "bash")
    assert event not in caller.events(tool_call.session_id)


def test_an_extension_changes_the_deadline_alone_and_a_decision_before_it_is_in_time(
    caller: Caller, stage: Stage, clock: Clock
) -> None:
    [tool_call] = asked(caller, stage)
    before = approval_of(caller, tool_call)
    extended = good(caller.post(f"/v1/approvals/{before['id']}/extend", json={"seconds": 100_000}))
    assert at(extended["expires_at"]) - at(before["created_at"]) >= timedelta(seconds=100_000)
    assert extended | {"expires_at": before["expires_at"]} == before
    [event] = [e for e in caller.events(tool_call.session_id, include="approvals") if e["type"] == "approval.extended"]
    assert at(event["expires_at"]) == at(extended["expires_at"])
    clock.advance(90_000)
    assert decide(caller, tool_call, result="allow")["status"] == "allowed"


def test_a_deadline_cannot_be_brought_forward_and_a_closed_approval_stays_closed(
    caller: Caller, stage: Stage, clock: Clock
) -> None:
    [tool_call], [decided] = asked(caller, stage), asked(caller, stage)
    decide(caller, decided, result="deny")
    path = "/v1/approvals/{}/extend"
    bad(caller.post(path.format(approval_of(caller, decided)["id"]), json={"seconds": 100_000}), 409, "already denied")
    approval = approval_of(caller, tool_call)
    error = bad(caller.post(path.format(approval["id"]), json={"seconds": 60}), 409, "seconds")
    assert at(error["winner"]["expires_at"]) == at(approval["expires_at"])
    clock.advance(86_401)
    bad(caller.post(path.format(approval["id"]), json={"seconds": 100_000}), 409, "expired")
    assert approval_of(caller, tool_call)["status"] == "expired"
    bad(caller.post(path.format("appr_none"), json={"seconds": 100_000}), 404)


@pytest.mark.parametrize("seconds", [None, 0, -1, 0.5, 366 * 86_400 + 1, "60", True])
def test_an_invalid_extension_is_refused(caller: Caller, waiting: ToolCall, seconds: Any) -> None:
    approval = approval_of(caller, waiting)
    bad(caller.post(f"/v1/approvals/{approval['id']}/extend", json={"seconds": seconds}), 400, "seconds: ")


def test_events_of_our_own_are_filtered_by_their_names(caller: Caller, stage: Stage) -> None:
    [tool_call] = asked(caller, stage)
    decide(caller, tool_call, result="allow", scope="session")
    for name in ("approval.requested", "approval.decided", "grant.given"):
        [event] = caller.events(tool_call.session_id, include="approvals", **{"types[]": name})
        assert event["type"] == name
        assert caller.events(tool_call.session_id, **{"types[]": name}) == []
