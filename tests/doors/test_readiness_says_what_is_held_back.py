"""`/readyz` names to administrators alone the calls that no worker takes because their files are on another storage."""

import httpx2
import pytest
from doors.served import Caller, bad, good, key
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.workspace.row import Workspace


def hold_back_a_call(stage: Stage) -> None:
    """Queue a call whose files are on a storage that no worker here has."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    first, second = stage.reply(session, call(), call())
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None


def test_a_call_that_no_worker_here_can_take_is_named_with_its_storage(caller: Caller, api: str, stage: Stage) -> None:
    hold_back_a_call(stage)
    ready = good(caller.get("/readyz"))
    assert ready["status"] == "ok"
    assert len(ready["held_back"]) == 1
    assert "stor_1" in ready["held_back"][0]
    with Caller(api, key(Stage(), "admin")) as other:
        assert good(other.get("/readyz"))["held_back"] == [], "another workspace's administrator does not see the call"


def test_without_an_administrator_s_key_readiness_is_the_status_alone(api: str, stage: Stage) -> None:
    hold_back_a_call(stage)
    assert good(httpx2.get(f"{api}/readyz")) == {"status": "ok"}
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals")) as other:
        bad(other.get("/readyz"), 403, "admin")
    with Caller(api, "sk-assent-none") as nobody:
        bad(nobody.get("/readyz"), 401)


@pytest.mark.parametrize("alarm", ["seal_alarm", "seal_stopped"])
def test_an_audit_that_is_not_sealed_is_named(api: str, stage: Stage, alarm: str) -> None:
    """Somebody may have changed its past, or no process can seal it."""
    with Caller(api, key(stage, "admin")) as caller:
        assert good(caller.get("/readyz"))["audit"] == "ok"
        with transaction(stage.workspace_id) as db:
            setattr(db.get_one(Workspace, stage.workspace_id), alarm, "the chain was signed before")
        assert good(caller.get("/readyz"))["audit"] == "the chain was signed before"
