"""A key knows its maker, who may not decide with four eyes what the key started. A key that a key creates is not stronger."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from doors.served import Caller, bad, good, key, message
from people import Somebody, member
from rows.stage import Stage, call

KEYS = "/v1/organizations/api_keys"
SCOPES = ["admin", "agents", "sessions", "read", "approvals"]
Client = Callable[[Somebody], httpx2.Client]


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage, "admin")


@pytest.fixture
def ben(stage: Stage) -> Somebody:
    return member(stage, "approver")


@pytest.fixture
def made(api: str, anna: Somebody, as_: Client) -> dict[str, Any]:
    """A key that Anna made, with its secret."""
    return good(as_(anna).post(KEYS, json={"name": "Anna's", "scopes": SCOPES}))


def asked(stage: Stage, client: httpx2.Client, **more: Any) -> dict[str, Any]:
    """Start a run that needs four eyes, and return the approval of its call."""
    tools = [{"type": "agent_toolset_20260401", "default_config": {"approval": {"four_eyes": True}}}]
    agent = good(client.post("/v1/agents", json={"name": "A", "model": "stand-in", "tools": tools}))
    environment = good(client.get("/v1/environments"))["data"][0]["id"]
    session = good(client.post("/v1/sessions", json={"agent": agent["id"], "environment_id": environment} | more))
    good(client.post(f"/v1/sessions/{session['id']}/events", json={"events": [message()]}))
    stage.reply(session["id"], call(command="ls"))
    [approval] = good(client.get("/v1/approvals", params={"session_id": session["id"]}))["data"]
    assert isinstance(approval, dict)
    return approval


def allow(client: httpx2.Client, approval: dict[str, Any]) -> httpx2.Response:
    return client.post(f"/v1/approvals/{approval['id']}/decision", json={"result": "allow"})


def test_a_key_names_the_person_who_made_it(made: dict[str, Any], caller: Caller, anna: Somebody) -> None:
    maker = {"id": anna.person_id, "type": "user"}
    assert made["created_by"] == maker
    assert [row["id"] for row in good(caller.get(KEYS, params={"created_by_user_id": anna.person_id}))["data"]] == [made["id"]]
    others = good(caller.get(KEYS))["data"]
    assert [row["created_by"] for row in others if row["id"] != made["id"]] == [None], "made on the command line"


def test_a_key_that_a_key_made_names_the_first_maker(
    api: str, made: dict[str, Any], anna: Somebody, ben: Somebody, caller: Caller, as_: Client, stage: Stage
) -> None:
    with Caller(api, made["key"]) as parent:
        child = good(parent.post(KEYS, json={"name": "child", "scopes": ["admin", "read"]}))
        assert child["created_by"]["id"] == anna.person_id
        with Caller(api, child["key"]) as second:
            grandchild = good(second.post(KEYS, json={"name": "grandchild", "scopes": ["read"]}))
        assert grandchild["created_by"]["id"] == anna.person_id
    assert good(caller.post(f"{KEYS}/{child['id']}/rotate", json={}))["created_by"]["id"] == anna.person_id
    assert good(caller.post(KEYS, json={"name": "of the command line's key"}))["created_by"] is None
    cara = member(stage, "admin")
    assert good(as_(cara).post(f"{KEYS}/{grandchild['id']}/rotate", json={}))["created_by"]["id"] == cara.person_id


@pytest.mark.parametrize("named", [True, False])
def test_the_maker_does_not_decide_what_the_key_started(
    api: str, stage: Stage, made: dict[str, Any], anna: Somebody, ben: Somebody, as_: Client, named: bool
) -> None:
    cara = member(stage)
    with Caller(api, made["key"]) as client:
        approval = asked(stage, client, **({"on_behalf_of": f"user:{ben.person_id}"} if named else {}))
    assert set(approval["started_by"]) == {f"user:{anna.person_id}"} | ({f"user:{ben.person_id}"} if named else set())
    assert approval["shortage"] is None
    bad(allow(as_(anna), approval), 403, "made the API key", "somebody else decides")
    assert good(as_(anna).get("/v1/approvals", params={"for": "me"}))["data"] == []
    assert good(allow(as_(cara), approval))["status"] == "allowed"


def test_a_key_without_a_maker_excludes_nobody_and_must_name_a_person(
    stage: Stage, caller: Caller, anna: Somebody, ben: Somebody, as_: Client
) -> None:
    with pytest.raises(AssertionError, match="name the person"):
        asked(stage, caller)
    approval = asked(stage, caller, on_behalf_of=f"user:{ben.person_id}")
    assert approval["started_by"] == [f"user:{ben.person_id}"]
    assert good(allow(as_(anna), approval))["status"] == "allowed"


def test_an_approval_that_nobody_may_decide_says_so_at_once(
    api: str, stage: Stage, made: dict[str, Any], anna: Somebody, as_: Client
) -> None:
    with Caller(api, made["key"]) as client:
        approval = asked(stage, client)
        assert approval["shortage"].startswith("Nobody may allow this call, since four eyes exclude the people who asked for it.")
        [waiting] = good(client.get(f"/v1/sessions/{approval['session_id']}"))["waiting_on"]
    assert waiting["shortage"] == approval["shortage"]
    bad(allow(as_(anna), approval), 403, "Nobody may allow this call")
    assert "Nobody may allow this call" in as_(anna).get(f"/inbox/approvals/{approval['id']}").text
    member(stage)
    assert good(as_(anna).get(f"/v1/approvals/{approval['id']}"))["shortage"] is None


@pytest.fixture
def bounded(api: str, caller: Caller) -> dict[str, Any]:
    """A key that ends in a day, and that may be used from this machine alone."""
    ends = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    body = {"name": "bounded", "scopes": SCOPES, "expires_at": ends.isoformat(), "allowed_cidrs": ["127.0.0.0/8"]}
    return good(caller.post(KEYS, json=body))


def test_a_child_has_its_creator_s_limits_unless_its_own_are_narrower(api: str, bounded: dict[str, Any]) -> None:
    with Caller(api, bounded["key"]) as client:
        child = good(client.post(KEYS, json={"name": "child", "scopes": ["read"]}))
        assert (child["expires_at"], child["allowed_cidrs"]) == (bounded["expires_at"], ["127.0.0.0/8"])
        soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        narrow = {"name": "narrow", "scopes": ["read"], "expires_at": soon, "allowed_cidrs": ["127.0.0.1"]}
        assert good(client.post(KEYS, json=narrow))["allowed_cidrs"] == ["127.0.0.1/32"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("expires_at", "2999-01-01T00:00:00Z"),
        ("allowed_cidrs", ["0.0.0.0/0"]),
        ("allowed_cidrs", ["127.0.0.1", "::/0"]),
        ("allowed_cidrs", ["126.0.0.0/7"]),
    ],
)
def test_a_child_with_wider_limits_is_refused(api: str, bounded: dict[str, Any], field: str, value: Any) -> None:
    with Caller(api, bounded["key"]) as client:
        bad(client.post(KEYS, json={"name": "x", "scopes": ["read"], field: value}), 400, field, "leave")


def test_a_rotation_by_a_key_gives_no_longer_and_no_wider_key(api: str, caller: Caller, bounded: dict[str, Any]) -> None:
    wide = good(caller.post(KEYS, json={"name": "wide", "scopes": ["read"]}))
    with Caller(api, bounded["key"]) as client:
        bad(client.post(f"{KEYS}/{wide['id']}/rotate", json={}), 400, "networks", "rotate it")
        own = good(client.post(f"{KEYS}/{bounded['id']}/rotate", json={}))
        assert (own["expires_at"], own["allowed_cidrs"]) == (bounded["expires_at"], ["127.0.0.0/8"])


def test_a_key_with_limits_lets_no_person_in(api: str, stage: Stage, bounded: dict[str, Any], ben: Somebody) -> None:
    with Caller(api, bounded["key"]) as client:
        body = {"email": "new@example.com", "workspace_role": "viewer"}
        bad(client.post("/v1/organizations/invites", json=body), 403, "expires_at", "allowed_cidrs")
        bad(client.post(f"/v1/organizations/users/{ben.person_id}/link", json={}), 403, "this key ends")
    with Caller(api, key(stage, *SCOPES)) as client:
        good(client.post("/v1/organizations/invites", json=body))


def test_the_pages_of_keys_name_the_maker(api: str, made: dict[str, Any], caller: Caller, anna: Somebody, as_: Client) -> None:
    text = as_(anna).get("/inbox/keys").text
    assert f"by {anna.email.partition('@')[0]}" in text
    assert "on the command line" in text
