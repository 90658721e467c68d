"""Readiness names the calls that workers leave because their files are on another storage, to administrators only."""

import httpx
from doors.served import Caller, bad, good, key
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.workspace.workspace import Workspace


def held_back(stage: Stage) -> None:
    """Have a call wait that no worker of the storage it needs is there for."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    first, second = stage.reply(session, call(), call())
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None


def test_a_call_that_no_worker_here_can_take(caller: Caller, api: str, stage: Stage) -> None:
    """The API is ready, and says what waits and why."""
    held_back(stage)
    said = good(caller.get("/readyz"))
    assert said["status"] == "ok"
    assert len(said["held_back"]) == 1
    assert "stor_1" in said["held_back"][0]
    with Caller(api, key(Stage(), "admin")) as other:
        assert good(other.get("/readyz"))["held_back"] == [], "another workspace's administrator sees nothing of it"


def test_without_an_administrator_s_key_it_says_ready_or_not_and_no_more(api: str, stage: Stage) -> None:
    held_back(stage)
    assert good(httpx.get(f"{api}/readyz")) == {"status": "ok"}
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals")) as other:
        bad(other.get("/readyz"), 403, "admin")
    with Caller(api, "sk-assent-none") as nobody:
        bad(nobody.get("/readyz"), 401)


def test_a_workspace_whose_audit_is_not_signed(api: str, stage: Stage) -> None:
    """The sealer refused it: somebody may have rewritten its past."""
    with Caller(api, key(stage, "admin")) as caller:
        assert good(caller.get("/readyz"))["audit"] == "ok"
        with transaction(stage.workspace_id) as db:
            db.get_one(Workspace, stage.workspace_id).seal_alarm = "the chain was signed before"
        assert good(caller.get("/readyz"))["audit"] == "the chain was signed before"
