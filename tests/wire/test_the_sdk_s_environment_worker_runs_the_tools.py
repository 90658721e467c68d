"""The `EnvironmentWorker` of each SDK serves a self-hosted environment: it polls, runs the built-in tools, and stops its work.

Each worker has a key that is bound to the environment. The npm SDK's worker is skipped with a notice if npm is missing.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from crashes.processes import wait_for
from own_database import Clock
from rows.stage import Stage, call, say
from wire.running import begin, environment_key, npm_worker, python_worker, results

POSTED = "user.tool_result"
Worker = Callable[[str, Path], AbstractContextManager[None]]
"""Runs a worker for an environment, in a folder."""


def toolset(**policies: str) -> Any:
    """Return the built-in tools with these policies."""
    configs = [{"name": name, "permission_policy": {"type": policy}} for name, policy in policies.items()]
    return {"type": "agent_toolset_20260401", "configs": configs}


@pytest.fixture
def environment_id(sdk: Anthropic) -> str:
    """The id of a self-hosted environment."""
    return sdk.beta.environments.create(name="Theirs", config={"type": "self_hosted"}).id


@pytest.fixture(params=["python", "npm"])
def environment_worker(api: str, stage: Stage, request: pytest.FixtureRequest) -> Worker:
    """Each SDK's worker in turn."""
    if request.param == "npm":
        return partial(npm_worker, request.getfixturevalue("npm_sdk"), api, stage)
    return partial(python_worker, api, stage)


def states(sdk: Anthropic, environment_id: str) -> list[str]:
    """Return the states of the environment's work, the newest first."""
    return [work.state for work in sdk.beta.environments.work.list(environment_id)]


def wait_for_release(sdk: Anthropic, environment_id: str) -> None:
    """Wait until the worker has stopped all work."""
    wait_for("the worker stops its work", lambda: set(states(sdk, environment_id)) == {"stopped"})


def test_allowed_calls_run_where_the_worker_is(
    environment_worker: Worker, sdk: Anthropic, stage: Stage, environment_id: str, tmp_path: Path
) -> None:
    session_id = begin(sdk, environment_id, toolset(bash="always_allow", write="always_allow", read="always_allow"))
    with environment_worker(environment_id, tmp_path):
        calls = stage.reply(
            session_id,
            call("write", file_path="a.txt", content="swept"),
            call("bash", command="cat a.txt; pwd"),
            call("read", file_path="a.txt"),
        )
        results(stage, session_id, 3, POSTED)
        assert (tmp_path / "a.txt").read_text() == "swept"
        assert "swept" in stage.result(calls[1])
        assert str(tmp_path) in stage.result(calls[1])
        assert "swept" in stage.result(calls[2])
        stage.reply(session_id, say("Done."))
        wait_for_release(sdk, environment_id)
    stage.check(session_id)
    assert {e.type for e in sdk.beta.sessions.events.list(session_id)} >= {"agent.tool_use", POSTED}


def test_a_call_that_asks_is_held_until_it_is_allowed(
    environment_worker: Worker, sdk: Anthropic, stage: Stage, environment_id: str, tmp_path: Path
) -> None:
    session_id = begin(sdk, environment_id, toolset(bash="always_ask", write="always_allow"))
    with environment_worker(environment_id, tmp_path):
        [ours, after] = stage.reply(
            session_id, call("bash", command="echo yes > asked.txt"), call("write", file_path="after.txt", content="x")
        )
        [first] = results(stage, session_id, 1, POSTED)
        assert first.body["tool_use_id"] == after.id
        assert not (tmp_path / "asked.txt").exists()
        stage.confirm(session_id, ours.id)
        results(stage, session_id, 2, POSTED)
        assert (tmp_path / "asked.txt").read_text() == "yes\n"
        stage.reply(session_id, say("Done."))
        wait_for_release(sdk, environment_id)
    stage.check(session_id)


@pytest.mark.parametrize("how", ["deny", "expire", "interrupt"])
def test_a_call_that_is_not_allowed_never_runs(
    environment_worker: Worker, sdk: Anthropic, stage: Stage, environment_id: str, tmp_path: Path, clock: Clock, how: str
) -> None:
    session_id = begin(sdk, environment_id, toolset(bash="always_ask", write="always_allow"))
    with environment_worker(environment_id, tmp_path):
        [ours, _] = stage.reply(
            session_id, call("bash", command="echo no > asked.txt"), call("write", file_path="seen.txt", content="x")
        )
        results(stage, session_id, 1, POSTED)
        if how == "deny":
            stage.confirm(session_id, ours.id, "deny")
        elif how == "expire":
            clock.advance(86_401)
            assert stage.expire(session_id) == 1
        else:
            stage.send(session_id, {"type": "user.interrupt"})
        if how != "interrupt":
            stage.reply(session_id, call("write", file_path="later.txt", content="x"))
            results(stage, session_id, 3, POSTED)
            stage.reply(session_id, say("Done."))
        wait_for_release(sdk, environment_id)
    assert not (tmp_path / "asked.txt").exists()
    stage.check(session_id)


def test_a_worker_that_vanished_is_replaced(
    environment_worker: Worker, api: str, sdk: Anthropic, stage: Stage, environment_id: str, tmp_path: Path, clock: Clock
) -> None:
    session_id = begin(sdk, environment_id, toolset(bash="always_allow"))
    [theirs] = stage.reply(session_id, call("bash", command="echo here"))
    lost = Anthropic(
        base_url=api, auth_token=environment_key(stage, environment_id), api_key=None, _strict_response_validation=True
    )
    work = lost.beta.environments.work
    item = work.poll(environment_id, block_ms=1)
    assert item
    work.ack(item.id, environment_id=environment_id)
    first = work.heartbeat(item.id, environment_id=environment_id, expected_last_heartbeat="NO_HEARTBEAT")
    assert (first.state, first.lease_extended) == ("active", True)
    assert work.poll(environment_id) is None
    clock.advance(61)
    with environment_worker(environment_id, tmp_path):
        results(stage, session_id, 1, POSTED)
        assert "here" in stage.result(theirs)
        stage.reply(session_id, say("Done."))
        wait_for_release(sdk, environment_id)
    assert len(states(sdk, environment_id)) == 1
    lost.close()


def test_the_strict_sdk_accepts_every_response_about_work(sdk: Anthropic, environment_id: str) -> None:
    begin(sdk, environment_id, toolset())
    work = sdk.beta.environments.work
    item = work.poll(environment_id)
    assert item
    assert work.retrieve(item.id, environment_id=environment_id) == item
    assert work.ack(item.id, environment_id=environment_id).acknowledged_at
    assert work.update(item.id, environment_id=environment_id, metadata={"k": "v"}).metadata == {"k": "v"}
    assert (work.stats(environment_id).depth, work.stats(environment_id).pending) == (0, 0)
    assert work.stop(item.id, environment_id=environment_id).state == "stopping"
    assert work.stop(item.id, environment_id=environment_id, force=True).state == "stopped"
