"""What each role may do, over HTTP by a cookie; and what no key ever is: a person."""

import pytest
from doors.served import Caller, bad, good
from people import acts_of, group, member
from rows.stage import Stage

from models.people.principal import PersonPrincipal
from models.people.roles import Role
from models.session.tool_call import ToolCall

MODEL = {"name": "A", "model": "claude-opus-4-5"}
MAY: dict[Role, tuple[bool, bool, bool, bool]] = {
    "admin": (True, True, True, True),
    "developer": (True, True, False, False),
    "approver": (False, False, True, False),
    "viewer": (True, False, False, False),
}
"""See all sessions, send messages, decide, manage people."""


@pytest.mark.parametrize("role", MAY)
def test_a_role_opens_what_it_says(api: str, stage: Stage, waiting: ToolCall, role: Role) -> None:
    sees, sends, decides, manages = MAY[role]
    with member(stage, role).client(api) as client:
        events = f"/v1/sessions/{waiting.session_id}/events"
        message = {"events": [{"type": "user.message", "content": [{"type": "text", "text": "Hello."}]}]}
        assert (client.get("/v1/sessions").status_code == 200) == sees
        assert (client.get("/v1/organizations/users").status_code == 200) == manages
        assert (client.get("/v1/organizations/api_keys").status_code == 200) == manages
        assert (client.post("/v1/policy", json={}).status_code == 200) == manages
        assert (client.get("/v1/audit").status_code == 200) == manages
        confirmation = {"type": "user.tool_confirmation", "tool_use_id": waiting.id, "result": "deny"}
        denied = client.post(events, json={"events": [confirmation]})
        assert (denied.status_code == 200) == decides, denied.text
        sent = client.post(events, json=message)
        assert (sent.status_code == 200) == sends, sent.text


def test_a_decision_names_the_person(api: str, stage: Stage, caller: Caller, waiting: ToolCall) -> None:
    anna = member(stage, "admin")
    with anna.client(api) as client:
        confirmation = {"type": "user.tool_confirmation", "tool_use_id": waiting.id, "result": "deny"}
        good(client.post(f"/v1/sessions/{waiting.session_id}/events", json={"events": [confirmation]}))
    assert (f"user:{anna.person_id}", "approval.decided") in acts_of(stage, "approval.")


def test_no_key_is_a_person_whatever_its_scopes(stage: Stage) -> None:
    assert not isinstance(stage.principal, PersonPrincipal)
    anna = member(stage, "viewer", groups=[group(stage)])
    assert isinstance(anna.principal, PersonPrincipal)
    assert str(anna.principal) == f"user:{anna.person_id}"


def test_a_person_of_one_workspace_sees_no_other(api: str, stage: Stage, waiting: ToolCall) -> None:
    with member(Stage(), "admin").client(api) as stranger:
        assert good(stranger.get("/v1/sessions"))["data"] == []
        bad(stranger.get(f"/v1/sessions/{waiting.session_id}"), 404)
