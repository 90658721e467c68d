"""An API key opens the routes of its scopes, in one workspace, until it is revoked."""

from collections.abc import Callable

import httpx2
import pytest
from crashes.processes import wait_for
from doors.served import Caller, bad, confirmation, good, key, message
from rows.stage import Stage, call

from models.database import ids
from models.database.transactions import transaction
from models.pure.key_secret import new_secret, well_formed
from models.workspace.api_key import DEFAULT_SCOPES, ApiKey, NewKey
from models.workspace.key_lookup import CACHE_SECONDS


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": ""},
        {"x-api-key": "sk-ant-api03-other"},
        {"x-api-key": new_secret()},
        {"x-api-key": new_secret()[:-1]},
        {"authorization": "Bearer"},
        {"authorization": "Basic dXNlcjpwYXNz"},
    ],
)
def test_a_missing_malformed_or_unknown_key_is_401(api: str, headers: dict[str, str], stage: Stage) -> None:
    answer = httpx2.get(f"{api}/v1/agents", headers=headers)
    assert bad(answer, 401, "API key")["type"] == "authentication_error"


def test_a_key_may_come_as_bearer_or_as_x_api_key(api: str, stage: Stage) -> None:
    secret = key(stage)
    for headers in ({"x-api-key": secret}, {"authorization": f"Bearer {secret}"}, {"authorization": f"bearer  {secret}"}):
        good(httpx2.get(f"{api}/v1/agents?beta=true", headers=headers | {"anthropic-version": "2023-06-01"}))


def test_the_checksum_detects_a_typo() -> None:
    secret = new_secret()
    assert well_formed(secret)
    for wrong in (secret[:-1], secret + "0", secret.swapcase(), secret[:20] + secret[21] + secret[20] + secret[22:], "ü" + secret):
        assert wrong == secret or not well_formed(wrong)


def test_a_backend_s_key_runs_agents_and_decides_nothing(with_scopes: Callable[..., Caller], stage: Stage) -> None:
    assert "approvals" not in DEFAULT_SCOPES
    backend = with_scopes(*DEFAULT_SCOPES)
    session = backend.session()
    backend.say(session["id"])
    [tool_call] = stage.reply(session["id"], call())
    assert bad(backend.tell(session["id"], confirmation(tool_call.id)), 403, "approvals")["type"] == "permission_error"
    bad(backend.tell(session["id"], message(), confirmation(tool_call.id)), 403, "approvals")
    [approval] = good(backend.get("/v1/approvals"))["data"]
    bad(backend.post(f"/v1/approvals/{approval['id']}/decision", json={"result": "allow"}), 403, "approvals")
    assert good(backend.get(f"/v1/approvals/{approval['id']}"))["status"] == "pending"


def test_an_approver_s_key_decides_and_does_nothing_else(with_scopes: Callable[..., Caller], caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"])
    [tool_call] = stage.reply(session["id"], call())
    approver = with_scopes("approvals")
    bad(approver.tell(session["id"], message()), 403, "sessions")
    bad(approver.get("/v1/approvals"), 403, "read")
    good(approver.tell(session["id"], confirmation(tool_call.id)))


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/agents", "agents"),
        ("GET", "/v1/agents", "read"),
        ("POST", "/v1/environments", "agents"),
        ("POST", "/v1/sessions", "sessions"),
        ("DELETE", "/v1/sessions/sesn_1", "sessions"),
        ("GET", "/v1/sessions/sesn_1/events/stream", "read"),
    ],
)
def test_each_route_names_the_scope_that_is_missing(with_scopes: Callable[..., Caller], method: str, path: str, scope: str) -> None:
    bad(with_scopes("admin").request(method, path), 403, repr(scope))


def test_a_revoked_key_is_refused_within_its_cache_time(api: str, stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        row, secret = ApiKey.create(db, NewKey("k"))
    with Caller(api, secret) as client:
        good(client.get("/v1/agents"))
        with transaction(stage.workspace_id) as db:
            ApiKey.revoke(db, row.id, by=stage.principal)
        wait_for("the key is refused", lambda: client.get("/v1/agents").status_code != 200, CACHE_SECONDS + 1)
        bad(client.get("/v1/agents"), 401)


def test_a_secret_is_not_in_the_database(stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        row, secret = ApiKey.create(db, NewKey("k"))
        stored = str([getattr(row, column.name) for column in ApiKey.__table__.columns])
    assert secret.removeprefix("sk-assent-")[:-4] not in stored


def test_a_key_sees_its_own_workspace_only(caller: Caller, api: str) -> None:
    agent = caller.agent()
    session = caller.session()
    with Caller(api, key(Stage())) as stranger:
        for path in (
            f"/v1/agents/{agent['id']}",
            f"/v1/sessions/{session['id']}",
            f"/v1/sessions/{session['id']}/events",
            f"/v1/sessions/{session['id']}/events/stream",
            f"/v1/environments/{session['environment_id']}",
        ):
            bad(stranger.get(path), 404)
        bad(stranger.tell(session["id"], message()), 404)
        body = {"agent": agent["id"], "environment_id": stranger.environment_id()}
        bad(stranger.post("/v1/sessions", json=body), 400, "agent")
        assert good(stranger.get("/v1/sessions"))["data"] == []


def test_a_header_that_names_another_workspace_is_refused(caller: Caller, stage: Stage) -> None:
    good(caller.get("/v1/agents", headers={"anthropic-workspace-id": stage.workspace_id}))
    bad(caller.get("/v1/agents", headers={"anthropic-workspace-id": ids.new("wrkspc")}), 403, "anthropic-workspace-id")


def test_the_audit_names_the_key_and_the_address(caller: Caller) -> None:
    [act] = good(caller.get("/v1/audit", params={"subject_id": caller.agent()["id"]}))["data"]
    assert act["address"] == "127.0.0.1"
    assert act["principal"].startswith("api_key:key_")
