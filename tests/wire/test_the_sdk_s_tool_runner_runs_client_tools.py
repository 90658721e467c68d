"""The SDK's own tool runner: it attaches, runs the client's tools, posts their results, and stops when the run ends."""

import asyncio
import threading
from typing import Any

from anthropic import Anthropic, AsyncAnthropic, beta_async_tool
from doors.served import key
from rows.stage import Stage, call, say

SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SECONDS = 20


@beta_async_tool
async def look_up(n: int) -> str:
    """Look up a number."""
    return f"it is {n}"


def prepare(sdk: Anthropic, **policy: Any) -> str:
    """A running session with one client tool."""
    tool: Any = {"type": "custom", "name": "look_up", "description": "d", "input_schema": SCHEMA} | policy
    agent = sdk.beta.agents.create(name="A", model="claude-opus-5-5", tools=[tool])
    environment = sdk.beta.environments.list().data[0]
    message: Any = {"type": "user.message", "content": [{"type": "text", "text": "Go."}]}
    return sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id, initial_events=[message]).id


def run(api: str, secret: str, session_id: str) -> list[Any]:
    """What the runner dispatched; ends by itself once the session is idle."""

    async def collect() -> list[Any]:
        async with AsyncAnthropic(api_key=secret, base_url=api) as client:
            runner = client.beta.sessions.events.tool_runner(session_id, tools=[look_up], max_idle=0.2)
            return [dispatched async for dispatched in runner]

    return asyncio.run(asyncio.wait_for(collect(), SECONDS))


def in_background(api: str, stage: Stage, session_id: str) -> tuple[threading.Thread, list[Any]]:
    """The runner in a thread."""
    found: list[Any] = []
    secret = key(stage)
    thread = threading.Thread(target=lambda: found.extend(run(api, secret, session_id)), daemon=True)
    thread.start()
    return thread, found


def wait_for_result(stage: Stage, session_id: str) -> None:
    """Until the client's result is stored and the next turn is queued."""
    deadline = threading.Event()
    timer = threading.Timer(SECONDS, deadline.set)
    timer.start()
    while not stage.events(session_id, "user.custom_tool_result"):
        assert not deadline.is_set(), "the runner posted no result"
    timer.cancel()


def test_a_call_is_run_and_its_result_reaches_the_model(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk)
    thread, dispatched = in_background(api, stage, session_id)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    wait_for_result(stage, session_id)
    assert stage.result(theirs) == "it is 42"
    stage.reply(session_id, say("Done."))
    thread.join(SECONDS)
    [one] = dispatched
    assert (one.tool_use_id, one.posted, one.is_error) == (theirs.id, True, False)


def test_a_call_that_asks_is_run_once_it_is_allowed(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk, permission_policy={"type": "always_ask"})
    thread, dispatched = in_background(api, stage, session_id)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    assert not stage.events(session_id, "agent.custom_tool_use")
    stage.confirm(session_id, theirs.id)
    wait_for_result(stage, session_id)
    stage.reply(session_id, say("Done."))
    thread.join(SECONDS)
    assert [d.tool_use_id for d in dispatched] == [theirs.id]


def test_a_call_that_is_denied_is_never_run(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk, permission_policy={"type": "always_ask"})
    thread, dispatched = in_background(api, stage, session_id)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    stage.confirm(session_id, theirs.id, "deny")
    stage.reply(session_id, say("Done."))
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert not [d for d in dispatched if d.posted]


def test_a_runner_that_comes_late_finds_what_waits(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    thread, dispatched = in_background(api, stage, session_id)
    wait_for_result(stage, session_id)
    stage.reply(session_id, say("Done."))
    thread.join(SECONDS)
    assert [d.tool_use_id for d in dispatched] == [theirs.id]
