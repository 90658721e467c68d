"""The SDKs' tool runner and `EnvironmentWorker`, which read the session's stream alone, run the calls of all its threads."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, beta_async_tool
from crashes.processes import wait_for
from rows.stage import Stage, call, say
from rows.threads import Child
from wire.running import Runner, begin, npm_worker, prepare, python_worker, results

POSTED = "user.tool_result"
Worker = Callable[[str, Path], AbstractContextManager[None]]
BASH: Any = {"name": "bash", "permission_policy": {"type": "always_ask"}}
WRITE: Any = {"name": "write", "permission_policy": {"type": "always_allow"}}
TOOLSET: Any = {"type": "agent_toolset_20260401", "configs": [BASH, WRITE]}


@beta_async_tool
async def look_up(n: int) -> str:
    """Look up a number."""
    return f"it is {n}"


@pytest.fixture(params=["python", "npm"])
def environment_worker(api: str, stage: Stage, request: pytest.FixtureRequest) -> Worker:
    """Each SDK's worker in turn."""
    if request.param == "npm":
        return partial(npm_worker, request.getfixturevalue("npm_sdk"), api, stage)
    return partial(python_worker, api, stage)


@pytest.fixture
def environment_id(sdk: Anthropic) -> str:
    """The id of a self-hosted environment."""
    return sdk.beta.environments.create(name="Theirs", config={"type": "self_hosted"}).id


def wait_for_release(sdk: Anthropic, environment_id: str) -> None:
    """Wait until the worker has stopped all work."""
    wait_for("the worker stops", lambda: {work.state for work in sdk.beta.environments.work.list(environment_id)} == {"stopped"})


def test_the_runner_runs_the_calls_of_two_children(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk)
    runner = Runner(api, stage, session_id, look_up)
    children = [Child(stage, session_id, name) for name in ("One", "Two")]
    calls = [child.propose("look_up", n=n) for n, child in enumerate(children)]
    results(stage, session_id, 2)
    assert [stage.result(each) for each in calls] == ["it is 0", "it is 1"]
    for child in children:
        child.reply(say("Done."))
    [own] = stage.reply(session_id, call("look_up", n=42))
    results(stage, session_id, 3)
    stage.reply(session_id, say("Done."))
    dispatched = {one.tool_use_id: one.event.session_thread_id for one in runner.join() if one.posted}
    assert dispatched == {calls[0].id: children[0].id, calls[1].id: children[1].id, own.id: None}
    assert runner.primary_thread_id == stage.thread(session_id).id
    stage.check(session_id)


def test_a_worker_holds_a_call_of_a_child_until_it_is_allowed(
    environment_worker: Worker, sdk: Anthropic, stage: Stage, environment_id: str, tmp_path: Path
) -> None:
    session_id = begin(sdk, environment_id, TOOLSET)
    child = Child(stage, session_id)
    with environment_worker(environment_id, tmp_path):
        [held, _] = child.reply(call(command="echo yes > held.txt"), call("write", file_path="free.txt", content="x"))
        stage.reply(session_id, say("I wait for my agent."))
        results(stage, session_id, 1, POSTED)
        assert not (tmp_path / "held.txt").exists()
        stage.confirm(session_id, held.id)
        results(stage, session_id, 2, POSTED)
        assert (tmp_path / "held.txt").read_text() == "yes\n"
        child.reply(say("Done."))
        stage.reply(session_id, say("My agent is done."))
        wait_for_release(sdk, environment_id)
    stage.check(session_id)


def test_a_worker_drops_the_held_call_of_a_child_that_ends(
    environment_worker: Worker, sdk: Anthropic, stage: Stage, environment_id: str, tmp_path: Path
) -> None:
    session_id = begin(sdk, environment_id, TOOLSET)
    child = Child(stage, session_id)
    with environment_worker(environment_id, tmp_path):
        child.reply(call(command="echo no > held.txt"), call("write", file_path="free.txt", content="x"))
        results(stage, session_id, 1, POSTED)
        sdk.beta.sessions.threads.archive(child.id, session_id=session_id)
        stage.reply(session_id, say("Done."))
        wait_for_release(sdk, environment_id)
    assert not (tmp_path / "held.txt").exists()
    stage.check(session_id)
