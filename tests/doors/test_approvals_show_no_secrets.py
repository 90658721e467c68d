"""What people see has its secrets masked; who may see them is known by scope, and that they did by the audit."""

from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from doors.waiting import approval_of, asked, secretive
from rows.stage import Stage, call

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.pure.canonical import digest, spelled
from models.session.session import Session
from models.session.tool_call import ToolCall

SECRET = {"amount": 5, "pin": "4711"}
MASKED = {"amount": 5, "pin": "«masked»"}


@pytest.fixture
def found(caller: Caller, stage: Stage) -> ToolCall:
    """A call with a secret that waits."""
    return secretive(caller, stage, **SECRET)


def revealed(stage: Stage, session_id: str) -> list[Audit]:
    """Who was shown the secrets of a session."""
    with transaction(stage.workspace_id) as db:
        return list(db.find(Audit, "WHERE chain = %(chain)s AND action = %(action)s", chain=session_id, action="approval.revealed"))


def test_an_approval_is_shown_masked_and_says_where(caller: Caller, found: ToolCall) -> None:
    approval = approval_of(caller, found)
    assert (approval["input"], approval["input_canonical"]) == (MASKED, spelled(MASKED))
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
    said = str(caller.events(plain.session_id, include="approvals")) + str(good(caller.get("/v1/approvals")))
    said += str(good(caller.get(f"/v1/sessions/{plain.session_id}")))
    assert "hunter2" not in said


def test_revealing_shows_the_real_input_and_is_audited(caller: Caller, stage: Stage, found: ToolCall) -> None:
    approval = approval_of(caller, found)
    assert revealed(stage, found.session_id) == []
    shown = good(caller.get(f"/v1/approvals/{approval['id']}", params={"reveal": "true"}))
    assert (shown["input"], shown["input_canonical"], shown["masked"]) == (SECRET, spelled(SECRET), [])
    [act] = revealed(stage, found.session_id)
    assert (act.subject_id, act.address) == (approval["id"], "127.0.0.1")
    assert act.principal.startswith("api_key:key_")
    assert "4711" not in str(act.details)
    stage.check(found.session_id)
    assert approval_of(caller, found) == approval


def test_revealing_shows_what_was_put_in_the_place_of_it(caller: Caller, found: ToolCall) -> None:
    path = f"/v1/approvals/{approval_of(caller, found)['id']}"
    good(caller.post(f"{path}/decision", json={"result": "allow", "updated_input": {"amount": 6, "pin": "0815"}}))
    assert good(caller.get(path))["decided_input"] == {"amount": 6, "pin": "«masked»"}
    assert good(caller.get(path, params={"reveal": "true"}))["decided_input"] == {"amount": 6, "pin": "0815"}


@pytest.mark.parametrize("scopes", [("read",), ("read", "approvals", "sessions", "agents", "admin")])
def test_no_other_scope_reveals(api: str, caller: Caller, stage: Stage, found: ToolCall, scopes: Any) -> None:
    path = f"/v1/approvals/{approval_of(caller, found)['id']}"
    with Caller(api, key(stage, *scopes)) as other:
        error = bad(other.get(path, params={"reveal": "true"}), 403, "'reveal'")
        assert "4711" not in str(error)
        assert good(other.get(path, params={"reveal": "false"}))["input"] == MASKED
    assert revealed(stage, found.session_id) == []


def test_what_is_not_revealed_is_not_audited(caller: Caller, stage: Stage, found: ToolCall) -> None:
    before = stage.get(Session, found.session_id).audit_seq
    good(caller.get(f"/v1/approvals/{approval_of(caller, found)['id']}"))
    assert stage.get(Session, found.session_id).audit_seq == before
