"""Readiness names the calls that workers leave because their files are on another storage, to the workspace's administrator."""

import httpx
from doors.served import good, key
from rows.stage import Stage, call


def test_a_call_that_no_worker_here_can_take(api: str, stage: Stage) -> None:
    """The API is ready, and says what waits and why."""
    session = stage.session(bash="always_allow")
    stage.message(session)
    first, second = stage.reply(session, call(), call())
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None
    for others in ({}, {"x-api-key": key(stage, "read")}, {"x-api-key": key(Stage())}):
        assert good(httpx.get(f"{api}/readyz", headers=others, trust_env=False))["held_back"] == []
    said = good(httpx.get(f"{api}/readyz", headers={"x-api-key": key(stage, "admin")}, trust_env=False))
    assert said["status"] == "ok"
    assert len(said["held_back"]) == 1
    assert "stor_1" in said["held_back"][0]
