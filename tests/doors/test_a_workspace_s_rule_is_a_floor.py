"""With the workspace rule that `docs/permissions.md` shows, every call asks, whatever agents and sessions say."""

import json
import os
import re
import subprocess
from typing import Any

import pytest
from doors.served import Caller, good, key
from own_database import Clock
from rows.stage import Stage, call
from warm import HOUSE

from models.session.tool_call.row import ToolCall

ALLOW = {"type": "always_allow"}
LATE = {"timeout_seconds": 60, "on_timeout": "allow"}
PAY = {"type": "custom", "name": "pay", "description": "Pay.", "input_schema": {"type": "object"}, "permission_policy": ALLOW}
LOOSE: dict[str, Any] = {
    "permission_policy": ALLOW,
    "tools": [
        {
            "type": "agent_toolset_20260401",
            "default_config": {"permission_policy": ALLOW},
            "configs": [{"name": "bash", "permission_policy": ALLOW, "approval": LATE}],
        },
        PAY,
    ],
}
"""An agent that allows everything, at each level of its policies."""
BLOCK = re.compile(r"```(json|sh)[^\n]*\n(.*)\n```")


def documented() -> dict[str, str]:
    """Return the documented rule (`json`) and command line (`sh`)."""
    return dict(BLOCK.findall((HOUSE / "docs/permissions.md").read_text()))


def set_the_floor(api: str, stage: Stage) -> None:
    """Run the documented command line, unchanged, in a shell."""
    env = os.environ | {"ASSENT_URL": api, "ASSENT_API_KEY": key(stage, "admin"), "no_proxy": "*"}
    done = subprocess.run(["bash", "-c", documented()["sh"]], env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["permission_policy"]["rules"] == [{"effect": "ask", "match": "*"}]


def permissions(stage: Stage, session: str) -> list[str]:
    """Return the permission of one call of each kind of tool."""
    calls = stage.reply(session, call(command="ls"), call("read", file_path="x"), call("pay", n=1))
    return [tool_call.permission for tool_call in calls]


def test_the_documented_command_sends_the_documented_rule() -> None:
    assert f"-d '{documented()['json']}'" in documented()["sh"]


def test_without_it_a_loose_agent_asks_for_nothing(caller: Caller, stage: Stage) -> None:
    session = caller.session(caller.agent(**LOOSE))["id"]
    caller.say(session)
    assert permissions(stage, session) == ["allow"] * 3


@pytest.mark.parametrize("by", ["agent", "session", "update"])
def test_with_it_neither_agent_nor_session_goes_below(caller: Caller, api: str, stage: Stage, by: str) -> None:
    agent = caller.agent(**(LOOSE if by == "agent" else {}))
    reference = {"type": "agent_with_overrides", "id": agent["id"]} | LOOSE if by == "session" else agent["id"]
    session = good(caller.post("/v1/sessions", json={"agent": reference, "environment_id": caller.environment_id()}))["id"]
    if by == "update":
        good(caller.post(f"/v1/sessions/{session}", json={"agent": {"tools": LOOSE["tools"]}}))
    set_the_floor(api, stage)
    caller.say(session)
    assert permissions(stage, session) == ["ask"] * 3


def test_no_deadline_allows_a_call_that_the_rule_asks(caller: Caller, api: str, stage: Stage, clock: Clock) -> None:
    set_the_floor(api, stage)
    session = caller.session(caller.agent(**LOOSE))["id"]
    caller.say(session)
    [tool_call] = stage.reply(session, call(command="ls"))
    clock.advance(61)
    assert stage.expire(session) == 1
    assert stage.get(ToolCall, tool_call.id).status == "expired"
