"""The inbox's filters, what an approval says before it is decided, and later deadlines."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from doors.served import Caller, bad, good, message
from doors.waiting import approval_of, asked, decide, secretive
from own_database import Clock
from rows.stage import Stage, call

from models import flow
from models.session.tool_call import ToolCall


def listed(caller: Caller, **query: Any) -> list[str]:
    """The calls of the approvals that these filters find."""
    return [a["tool_use_id"] for a in good(caller.get("/v1/approvals", params=query))["data"]]


def at(text: str) -> datetime:
    """A time of an answer."""
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
def test_a_filter_that_is_none_is_named(caller: Caller, query: str) -> None:
    bad(caller.get(f"/v1/approvals?{query}"), 400, query.partition("=")[0])


def test_it_says_before_the_decision_what_a_grant_would_cover_and_what_the_deadline_does(caller: Caller, stage: Stage) -> None:
    [found] = asked(caller, stage)
    approval = approval_of(caller, found)
    assert approval["covers"]["exact"] == "only this exact input of bash"
    assert approval["covers"]["tool"].startswith("every call of bash (beside a rule that denies or asks about commands: only")
    assert (approval["on_timeout"], approval["grant"], approval["decided_input"]) == ("deny", None, None)
    assert at(approval["remind_at"]) > at(approval["created_at"])


def test_a_reminder_is_seen_in_the_approval_and_by_who_asks_for_it(caller: Caller, stage: Stage, clock: Clock) -> None:
    [found] = asked(caller, stage)
    clock.advance(3600)
    assert flow.remind_due(stage.workspace_id, found.session_id) == 1
    approval = approval_of(caller, found)
    assert approval["remind_at"] is None
    assert approval["reminded_at"] is not None
    [event] = [e for e in caller.events(found.session_id, include="approvals") if e["type"] == "approval.reminded"]
    assert (event["approval_id"], event["tool"]) == (approval["id"], "bash")
    assert event not in caller.events(found.session_id)


def test_a_later_deadline_is_later(caller: Caller, stage: Stage, clock: Clock) -> None:
    [found] = asked(caller, stage)
    before = approval_of(caller, found)
    extended = good(caller.post(f"/v1/approvals/{before['id']}/extend", json={"seconds": 100_000}))
    assert at(extended["expires_at"]) - at(before["created_at"]) >= timedelta(seconds=100_000)
    assert extended | {"expires_at": before["expires_at"]} == before
    [event] = [e for e in caller.events(found.session_id, include="approvals") if e["type"] == "approval.extended"]
    assert at(event["expires_at"]) == at(extended["expires_at"])
    clock.advance(90_000)
    assert decide(caller, found, result="allow")["status"] == "allowed"


def test_a_deadline_cannot_be_brought_forward_and_what_is_over_stays_so(caller: Caller, stage: Stage, clock: Clock) -> None:
    [found], [decided] = asked(caller, stage), asked(caller, stage)
    decide(caller, decided, result="deny")
    path = "/v1/approvals/{}/extend"
    bad(caller.post(path.format(approval_of(caller, decided)["id"]), json={"seconds": 100_000}), 409, "already denied")
    approval = approval_of(caller, found)
    error = bad(caller.post(path.format(approval["id"]), json={"seconds": 60}), 409, "seconds")
    assert at(error["winner"]["expires_at"]) == at(approval["expires_at"])
    clock.advance(86_401)
    bad(caller.post(path.format(approval["id"]), json={"seconds": 100_000}), 409, "expired")
    assert approval_of(caller, found)["status"] == "expired"
    bad(caller.post(path.format("appr_none"), json={"seconds": 100_000}), 404)


@pytest.mark.parametrize("seconds", [None, 0, -1, 0.5, 366 * 86_400 + 1, "60", True])
def test_a_time_that_is_none_is_named(caller: Caller, stage: Stage, seconds: Any) -> None:
    approval = approval_of(caller, asked(caller, stage)[0])
    bad(caller.post(f"/v1/approvals/{approval['id']}/extend", json={"seconds": seconds}), 400, "seconds: ")


def test_events_of_our_own_are_filtered_by_their_names(caller: Caller, stage: Stage) -> None:
    [found] = asked(caller, stage)
    decide(caller, found, result="allow", scope="session")
    for name in ("approval.requested", "approval.decided", "grant.given"):
        [event] = caller.events(found.session_id, include="approvals", **{"types[]": name})
        assert event["type"] == name
        assert caller.events(found.session_id, **{"types[]": name}) == []
    good(caller.tell(found.session_id, message()))


def test_a_session_says_what_it_waits_for(caller: Caller, stage: Stage) -> None:
    found: ToolCall
    [found, other] = asked(caller, stage, call(command="ls"), call(command="pwd"))
    decide(caller, other, result="allow", scope="session", match="exact")
    [waiting] = good(caller.get(f"/v1/sessions/{found.session_id}"))["waiting_on"]
    assert (waiting["tool_use_id"], waiting["approval_id"]) == (found.id, approval_of(caller, found)["id"])
