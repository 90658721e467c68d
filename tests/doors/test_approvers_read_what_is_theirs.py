"""An approver reads the sessions, approvals and grants that they may decide or could decide. Everything else is a 404."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from doors.reading import stream
from doors.served import Caller, bad, confirmation, good
from doors.waiting import approval_of
from people import Somebody, member
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.people.group import Group

SECRET_PLACE = "ls /srv/payroll"

Client = Callable[[Somebody], httpx2.Client]


@pytest.fixture
def theirs(caller: Caller, stage: Stage, finance: str) -> dict[str, Any]:
    """An approval for the group `finance` alone."""
    config = {"name": "bash", "approval": {"approvers": [f"group:{finance}"]}}
    member(stage, groups=[finance])  # an agent may name only approvers who exist
    agent = caller.agent(tools=[{"type": "agent_toolset_20260401", "configs": [config]}])
    session = caller.session(agent, title="Payroll")
    caller.say(session["id"])
    [tool_call] = stage.reply(session["id"], call(command=SECRET_PLACE))
    return approval_of(caller, tool_call)


def paths_of(session_id: str) -> list[str]:
    """Return the routes that read one session."""
    thread = f"sthr_{session_id.partition('_')[2]}"
    ends = ["", "/events", "/threads", f"/threads/{thread}", f"/threads/{thread}/events"]
    return [f"/v1/sessions/{session_id}{end}" for end in ends]


def streams_of(session_id: str) -> list[str]:
    """Return the routes that stream one session, in the API and in the inbox."""
    thread = f"sthr_{session_id.partition('_')[2]}"
    at = f"/v1/sessions/{session_id}"
    return [f"{at}/events/stream", f"{at}/threads/{thread}/stream", f"/inbox/sessions/{session_id}/stream"]


def test_a_session_is_read_by_those_who_decide_in_it(as_: Client, stage: Stage, finance: str, theirs: dict[str, Any]) -> None:
    own, stranger = as_(member(stage, groups=[finance])), as_(member(stage))
    for path in paths_of(theirs["session_id"]):
        good(own.get(path))
        bad(stranger.get(path), 404)
    good(own.post(f"/v1/approvals/{theirs['id']}/decision", json={"result": "deny"}))
    for path in paths_of(theirs["session_id"]):
        good(own.get(path))


def test_a_session_is_streamed_to_those_who_decide_in_it(
    as_: Client, api: str, stage: Stage, finance: str, theirs: dict[str, Any]
) -> None:
    own, stranger = member(stage, groups=[finance]).client(api), as_(member(stage))
    with own:
        with stream(own, theirs["session_id"], last=0) as opened:
            assert opened.until("agent.tool_use")
        for path in streams_of(theirs["session_id"]):
            assert stranger.get(path).status_code == 404
            with own.stream("GET", path) as answer:
                assert answer.status_code == 200


def test_an_approver_reads_no_session_without_an_approval(as_: Client, caller: Caller, stage: Stage) -> None:
    session_id = caller.session()["id"]
    approver = as_(member(stage))
    for path in paths_of(session_id):
        bad(approver.get(path), 404)


def test_somebody_who_left_the_group_reads_no_more(as_: Client, stage: Stage, finance: str, theirs: dict[str, Any]) -> None:
    anna = member(stage, groups=[finance])
    client = as_(anna)
    good(client.get(paths_of(theirs["session_id"])[0]))
    with transaction(stage.workspace_id) as db:
        Group.take_out(db, finance, anna.person_id, by=stage.principal)
    for path in paths_of(theirs["session_id"]):
        bad(client.get(path), 404)


@pytest.mark.parametrize(
    ("verb", "body"),
    [("extend", {"seconds": 90_000}), ("preview", {"match": "exact", "scope": "session"}), ("decision", {"result": "allow"})],
)
def test_no_route_of_an_approval_shows_it_to_a_stranger(
    as_: Client, stage: Stage, theirs: dict[str, Any], verb: str, body: dict[str, Any]
) -> None:
    stranger = as_(member(stage))
    answer = stranger.post(f"/v1/approvals/{theirs['id']}/{verb}", json=body)
    bad(answer, 404)
    assert "payroll" not in answer.text


def test_a_decision_repeated_by_a_stranger_shows_nothing(as_: Client, stage: Stage, finance: str, theirs: dict[str, Any]) -> None:
    own, stranger = as_(member(stage, groups=[finance])), as_(member(stage))
    good(own.post(f"/v1/approvals/{theirs['id']}/decision", json={"result": "deny"}))
    same = {"result": "deny"}
    bad(stranger.post(f"/v1/approvals/{theirs['id']}/decision", json=same), 404)
    bad(stranger.post("/v1/approvals/decisions", json={"decisions": [{"approval_id": theirs["id"], **same}]}), 404)
    events = f"/v1/sessions/{theirs['session_id']}/events"
    bad(stranger.post(events, json={"events": [confirmation(theirs["tool_use_id"], "deny")]}), 404)


def test_pages_show_an_approver_nothing_of_other_people_s_approvals(
    as_: Client, caller: Caller, stage: Stage, finance: str, theirs: dict[str, Any]
) -> None:
    """Neither in the list's filters, nor among a card's earlier decisions, nor among the grants."""
    own, stranger = as_(member(stage, groups=[finance])), as_(member(stage))
    lists = stranger.get("/inbox").text
    assert finance not in lists
    assert theirs["agent_id"] not in lists
    agent = good(caller.get(f"/v1/agents/{theirs['agent_id']}"))
    opened = {"type": "agent_toolset_20260401", "configs": [{"name": "bash"}]}
    good(caller.post(f"/v1/agents/{agent['id']}", json={"version": agent["version"], "tools": [opened]}))
    good(own.post(f"/v1/approvals/{theirs['id']}/decision", json={"result": "allow", "scope": "always", "match": "exact"}))
    session = caller.session(agent)
    caller.say(session["id"])
    [tool_call] = stage.reply(session["id"], call(command="ls /tmp"))
    anybody_s = approval_of(caller, tool_call)
    card = f"/inbox/approvals/{anybody_s['id']}"
    assert "payroll" in own.get(card).text
    assert "ls /tmp" in stranger.get(card).text
    assert "payroll" not in stranger.get(card).text
    assert theirs["id"] in own.get("/inbox/grants").text
    assert theirs["id"] not in stranger.get("/inbox/grants").text
    assert "Payroll" in own.get("/inbox/sessions").text
    assert "Payroll" not in stranger.get("/inbox/sessions").text
