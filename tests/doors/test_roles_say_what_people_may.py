"""What a signed-in person may do in each role."""

import pytest
from doors.served import bad, confirmation, good, message
from people import acts_of, member
from rows.stage import Stage

from models.people.roles import Role
from models.session.tool_call.row import ToolCall

MAY: dict[Role, tuple[bool, bool, bool, bool]] = {
    "admin": (True, True, True, True),
    "developer": (True, True, False, False),
    "approver": (False, False, True, False),
    "viewer": (True, False, False, False),
}
"""True if the role may see all sessions, send messages, decide, manage people."""


@pytest.mark.parametrize("role", MAY)
def test_a_role_opens_its_own_routes_alone(api: str, stage: Stage, waiting: ToolCall, role: Role) -> None:
    sees, sends, decides, manages = MAY[role]
    with member(stage, role).client(api) as client:
        events = f"/v1/sessions/{waiting.session_id}/events"
        assert (client.get("/v1/sessions").status_code == 200) == sees
        assert (client.get("/v1/organizations/users").status_code == 200) == manages
        assert (client.get("/v1/organizations/api_keys").status_code == 200) == manages
        assert (client.post("/v1/policy", json={}).status_code == 200) == manages
        assert (client.get("/v1/audit").status_code == 200) == manages
        denied = client.post(events, json={"events": [confirmation(waiting.id, "deny")]})
        assert (denied.status_code == 200) == decides, denied.text
        sent = client.post(events, json={"events": [message()]})
        assert (sent.status_code == 200) == sends, sent.text


def test_a_decision_names_the_person(api: str, stage: Stage, waiting: ToolCall) -> None:
    anna = member(stage, "admin")
    with anna.client(api) as client:
        body = {"events": [confirmation(waiting.id, "deny")]}
        good(client.post(f"/v1/sessions/{waiting.session_id}/events", json=body))
    assert (f"user:{anna.person_id}", "approval.decided") in acts_of(stage, "approval.")


def test_a_person_of_one_workspace_sees_no_other(api: str, stage: Stage, waiting: ToolCall) -> None:
    with member(Stage(), "admin").client(api) as stranger:
        assert good(stranger.get("/v1/sessions"))["data"] == []
        bad(stranger.get(f"/v1/sessions/{waiting.session_id}"), 404)
