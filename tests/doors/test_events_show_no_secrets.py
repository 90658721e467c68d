"""Events in lists, threads and streams show each reader only what the reader's scopes allow."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from doors.reading import stream
from doors.served import Caller, bad, good, key
from doors.waiting import SECRETIVE
from people import member
from rows.stage import Stage, call

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.people.roles import Role

PIN = "hunter2hunter2"
TOOLS = [
    {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_allow"}}},
    SECRETIVE | {"permission_policy": {"type": "always_allow"}},
]
RESULTS = ["agent.tool_result", "user.custom_tool_result"]


@pytest.fixture
def session(caller: Caller, stage: Stage) -> str:
    """A session with a call of a built-in tool and one of a client tool. Both results repeat the secret."""
    session_id: str = caller.session(caller.agent(tools=TOOLS))["id"]
    caller.say(session_id)
    ours, theirs = stage.reply(session_id, call(command=f"PASSWORD={PIN} ./x"), call("transfer", amount=5, pin=PIN))
    stage.run_call(ours, f"logged in with {PIN}")
    result = {
        "type": "user.custom_tool_result",
        "custom_tool_use_id": theirs.id,
        "content": [{"type": "text", "text": f"paid: {PIN}"}],
    }
    good(caller.tell(session_id, result))
    return session_id


@pytest.fixture
def approver(api: str, stage: Stage) -> Iterator[Caller]:
    """A client that reads and decides."""
    with Caller(api, key(stage, "read", "approvals", "admin")) as client:
        yield client


def reveals(stage: Stage, session: str) -> list[Audit]:
    """Return the audit acts that record a reveal of a session's events."""
    with transaction(stage.workspace_id) as db:
        return list(db.find(Audit, "WHERE chain = %(chain)s AND action = %(action)s", chain=session, action="events.revealed"))


def streamed(client: httpx2.Client, session: str, path: str = "") -> list[dict[str, Any]]:
    """Return all events, read from a stream."""
    with stream(client, session, last=0, path=path) as opened:
        return [frame.data for frame in opened.until("user.custom_tool_result")]


def test_a_reader_that_runs_no_tools_sees_no_secret(approver: Caller, session: str) -> None:
    thread = f"/v1/sessions/{session}/threads/sthr_{session.partition('_')[2]}/events"
    for events in (approver.events(session), good(approver.get(thread))["data"], streamed(approver, session)):
        assert PIN not in str(events)
        assert "shown_input" not in str(events)
        [use] = [event for event in events if event["type"] == "agent.custom_tool_use"]
        assert use["input"] == {"amount": 5, "pin": "«masked»"}
        texts = [event["content"][0]["text"] for event in events if event["type"] in RESULTS]
        assert texts == ["logged in with «masked»", "paid: «masked»"]


def test_a_key_that_runs_client_tools_gets_their_whole_input(api: str, stage: Stage, session: str) -> None:
    for scope in ("sessions", "environment"):
        with Caller(api, key(stage, "read", scope)) as runner:
            for events in (runner.events(session), streamed(runner, session)):
                [use] = [event for event in events if event["type"] == "agent.custom_tool_use"]
                assert use["input"] == {"amount": 5, "pin": PIN}
                assert "shown_input" not in str(events)
                assert str(events).count(PIN) == 1, "neither the other call nor any result"


@pytest.mark.parametrize("role", ["admin", "developer"])
def test_a_person_runs_no_client_s_tools(api: str, stage: Stage, session: str, role: Role) -> None:
    """A person sees a secret only by revealing it, which is audited."""
    with member(stage, role).client(api) as person:
        events: list[dict[str, Any]] = good(person.get(f"/v1/sessions/{session}/events"))["data"]
        for shown in (events, streamed(person, session), streamed(person, session, f"/inbox/sessions/{session}/stream")):
            assert [event["input"]["pin"] for event in shown if event["type"] == "agent.custom_tool_use"] == ["«masked»"]
            assert PIN not in str(shown)


def test_revealing_shows_what_was_sent_and_is_audited(caller: Caller, approver: Caller, session: str, stage: Stage) -> None:
    bad(approver.get(f"/v1/sessions/{session}/events", params={"reveal": "true"}), 403, "'reveal'")
    assert reveals(stage, session) == []
    events = caller.events(session, reveal="true")
    assert [event["content"][0]["text"] for event in events if event["type"] in RESULTS] == [
        f"logged in with {PIN}",
        f"paid: {PIN}",
    ]
    [ours] = [event for event in events if event["type"] == "agent.tool_use"]
    assert ours["input"] == {"command": f"PASSWORD={PIN} ./x"}
    [act] = reveals(stage, session)
    assert ours["id"] in act.details["tool_calls"]
    assert PIN not in str(act.details)
    stage.check(session)
