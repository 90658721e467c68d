"""`assent holds` against the API as it is served."""

import json

import pytest
from doors.served import key
from local.conftest import Assent
from rows.stage import Stage

REASON = "Case 2026-114"


def test_holds_are_set_listed_and_released(assent: Assent, stage: Stage) -> None:
    session_id = stage.session()
    hold = json.loads(assent("holds", "set", "--session", session_id, "--reason", REASON, "--json"))
    assert (hold["session_id"], hold["reason"]) == (session_id, REASON)
    assert "the workspace" in assent("holds", "set", "--reason", "The whole year.")
    everything, of_session = assent("holds", "list"), assent("holds", "list", "--session", session_id)
    assert REASON in everything
    assert "The whole year." in everything
    assert REASON in of_session
    assert "The whole year." not in of_session
    assert json.loads(assent("holds", "release", hold["id"], "--json"))["released_by"] == hold["created_by"]
    assert REASON not in assent("holds", "list")
    assert REASON in assent("holds", "list", "--all")
    assert "just now by the key “test”" in assent("holds", "list", "--all")


def test_a_hold_needs_the_right_and_a_reason(assent: Assent, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--reason" in assent("holds", "set", code=2)
    assert "session_id" in assent("holds", "set", "--session", "sesn_unknown", "--reason", REASON, code=1)
    monkeypatch.setenv("ASSENT_API_KEY", key(stage, "read"))
    assert "admin" in assent("holds", "set", "--reason", REASON, code=1)
