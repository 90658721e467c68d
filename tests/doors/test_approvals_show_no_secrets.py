"""Approvals are shown with their secrets masked. Only the scope `reveal` shows them, and the audit records each time."""

from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from doors.waiting import approval_of, asked, secretive
from rows.stage import Stage, call

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.pure.json.canonical import canonical_text, digest
from models.session.tool_call.row import ToolCall

SECRET = {"amount": 5, "pin": "4711"}
MASKED = {"amount": 5, "pin": "«masked»"}


@pytest.fixture
def tool_call(caller: Caller, stage: Stage) -> ToolCall:
    """A waiting call with a secret."""
    return secretive(caller, stage, **SECRET)


def revealed(stage: Stage, session_id: str) -> list[Audit]:
    """Return the audit acts that record a reveal in a session."""
    with transaction(stage.workspace_id) as db:
        return list(db.find(Audit, "WHERE chain = %(chain)s AND action = %(action)s", chain=session_id, action="approval.revealed"))


def test_an_approval_is_shown_masked_and_names_the_masked_fields(caller: Caller, tool_call: ToolCall) -> None:
    approval = approval_of(caller, tool_call)
    assert (approval["input"], approval["input_canonical"]) == (MASKED, canonical_text(MASKED))
    assert approval["masked"] == ["/pin"]
    assert approval["input_sha256"] == digest(SECRET)
    assert good(caller.get(f"/v1/approvals/{approval['id']}")) == approval


def test_an_approval_without_secrets_is_shown_as_it_is(caller: Caller, stage: Stage) -> None:
    [plain] = asked(caller, stage)
    approval = approval_of(caller, plain)
    assert (approval["input"], approval["masked"]) == ({"command": "ls -l"}, [])
    assert digest(approval["input"]) == approval["input_sha256"]


def test_a_secret_in_a_command_line_is_in_no_event_and_no_list(caller: Caller, stage: Stage) -> None:
    [plain] = asked(caller, stage, call(command="PASSWORD=hunter2 ./deploy"))
    approval = approval_of(caller, plain)
    assert approval["input"] == {"command": "PASSWORD=«masked» ./deploy"}
    responses = str(caller.events(plain.session_id, include="approvals")) + str(good(caller.get("/v1/approvals")))
    responses += str(good(caller.get(f"/v1/sessions/{plain.session_id}")))
    assert "hunter2" not in responses


def test_revealing_shows_the_real_input_and_is_audited(caller: Caller, stage: Stage, tool_call: ToolCall) -> None:
    approval = approval_of(caller, tool_call)
    assert revealed(stage, tool_call.session_id) == []
    shown = good(caller.get(f"/v1/approvals/{approval['id']}", params={"reveal": "true"}))
    assert (shown["input"], shown["input_canonical"], shown["masked"]) == (SECRET, canonical_text(SECRET), [])
    [act] = revealed(stage, tool_call.session_id)
    assert (act.subject_id, act.address) == (approval["id"], "127.0.0.1")
    assert act.principal.startswith("api_key:key_")
    assert "4711" not in str(act.details)
    stage.check(tool_call.session_id)
    assert approval_of(caller, tool_call) == approval


def test_revealing_shows_an_edited_input_too(caller: Caller, tool_call: ToolCall) -> None:
    path = f"/v1/approvals/{approval_of(caller, tool_call)['id']}"
    good(caller.post(f"{path}/decision", json={"result": "allow", "updated_input": {"amount": 6, "pin": "0815"}}))
    assert good(caller.get(path))["decided_input"] == {"amount": 6, "pin": "«masked»"}
    assert good(caller.get(path, params={"reveal": "true"}))["decided_input"] == {"amount": 6, "pin": "0815"}


@pytest.mark.parametrize("scopes", [("read",), ("read", "approvals", "sessions", "agents", "admin")])
def test_no_other_scope_reveals(api: str, caller: Caller, stage: Stage, tool_call: ToolCall, scopes: Any) -> None:
    path = f"/v1/approvals/{approval_of(caller, tool_call)['id']}"
    with Caller(api, key(stage, *scopes)) as other:
        error = bad(other.get(path, params={"reveal": "true"}), 403, "'reveal'")
        assert "4711" not in str(error)
        assert good(other.get(path, params={"reveal": "false"}))["input"] == MASKED
    assert revealed(stage, tool_call.session_id) == []
