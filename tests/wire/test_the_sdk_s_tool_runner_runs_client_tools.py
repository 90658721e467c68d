"""The SDK's tool runner runs client tools, posts their results, and stops when the run ends."""

import asyncio
import threading
from typing import Any

import pytest
from anthropic import Anthropic, beta_async_tool
from own_database import Clock
from rows.stage import Stage, call, say
from wire.proxy import Proxy
from wire.running import SECONDS, Runner, prepare, results

ASKS: Any = {"permission_policy": {"type": "always_ask"}}


@beta_async_tool
async def look_up(n: int) -> str:
    """Look up a number."""
    return f"it is {n}"


def test_a_call_is_run_and_its_result_reaches_the_model(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk)
    runner = Runner(api, stage, session_id, look_up)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    results(stage, session_id)
    assert stage.result(theirs) == "it is 42"
    stage.reply(session_id, say("Done."))
    [one] = runner.join()
    assert (one.tool_use_id, one.posted, one.is_error) == (theirs.id, True, False)


def test_a_call_that_asks_is_run_once_it_is_allowed(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk, **ASKS)
    runner = Runner(api, stage, session_id, look_up)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    assert not stage.events(session_id, "agent.custom_tool_use")
    stage.confirm(session_id, theirs.id)
    results(stage, session_id)
    stage.reply(session_id, say("Done."))
    assert [d.tool_use_id for d in runner.join()] == [theirs.id]


def test_a_call_that_a_chat_word_allows_is_run(api: str, sdk: Anthropic, stage: Stage) -> None:
    """The runner passes over the messages about approvals, and stops at the end of the run."""
    session_id = prepare(sdk, **ASKS)
    stage.locked(session_id, lambda locked: setattr(locked.session, "chat_approvals", True))
    runner = Runner(api, stage, session_id, look_up)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    stage.message(session_id, "What is it?")
    word = {"type": "user.message", "content": [say("ok")], "seen": stage.events(session_id)[-1].id}
    stage.send(session_id, word)
    results(stage, session_id)
    stage.reply(session_id, say("Done."))
    assert [d.tool_use_id for d in runner.join()] == [theirs.id]


def test_a_call_that_is_denied_is_never_run(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk, **ASKS)
    runner = Runner(api, stage, session_id, look_up)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    stage.confirm(session_id, theirs.id, "deny")
    stage.reply(session_id, say("Done."))
    assert not [d for d in runner.join() if d.posted]


def test_a_call_that_nobody_decides_in_time_is_never_run(api: str, sdk: Anthropic, stage: Stage, clock: Clock) -> None:
    session_id = prepare(sdk, **ASKS)
    runner = Runner(api, stage, session_id, look_up)
    stage.reply(session_id, call("look_up", n=42))
    clock.advance(86_401)
    assert stage.expire(session_id) == 1
    stage.reply(session_id, say("Done."))
    assert not [d for d in runner.join() if d.posted]


@pytest.mark.parametrize("policy", [{}, ASKS])
def test_an_interrupt_ends_the_runner(api: str, sdk: Anthropic, stage: Stage, policy: Any) -> None:
    entered, leave = threading.Event(), threading.Event()

    @beta_async_tool(name="look_up")
    async def slow(n: int) -> str:
        """Look up a number, slowly."""
        entered.set()
        await asyncio.to_thread(leave.wait, SECONDS)
        return f"it is {n}"

    session_id = prepare(sdk, **policy)
    runner = Runner(api, stage, session_id, slow)
    stage.reply(session_id, call("look_up", n=42))
    assert policy or entered.wait(SECONDS)
    stage.send(session_id, {"type": "user.interrupt"})
    leave.set()
    assert not [d for d in runner.join() if d.posted]
    [result] = stage.events(session_id, "user.custom_tool_result")
    assert result.body["is_error"]
    stage.check(session_id)


def test_a_runner_that_starts_late_runs_the_waiting_call(api: str, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    runner = Runner(api, stage, session_id, look_up)
    results(stage, session_id)
    stage.reply(session_id, say("Done."))
    assert [d.tool_use_id for d in runner.join()] == [theirs.id]


def test_a_runner_that_loses_its_connection_misses_nothing_and_repeats_nothing(proxy: Proxy, sdk: Anthropic, stage: Stage) -> None:
    session_id = prepare(sdk)
    runner = Runner(proxy.url, stage, session_id, look_up)
    [first] = stage.reply(session_id, call("look_up", n=1))
    results(stage, session_id)
    before = proxy.connections
    proxy.cut()
    [second] = stage.reply(session_id, call("look_up", n=2))
    results(stage, session_id, 2)
    stage.reply(session_id, say("Done."))
    assert [(d.tool_use_id, d.posted) for d in runner.join()] == [(first.id, True), (second.id, True)]
    assert proxy.connections > before


@pytest.mark.parametrize("archived", [False, True])
def test_a_runner_on_a_finished_session_ends_at_once(api: str, sdk: Anthropic, stage: Stage, *, archived: bool) -> None:
    session_id = prepare(sdk, **ASKS)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    stage.confirm(session_id, theirs.id, "deny")
    stage.reply(session_id, say("Done."))
    if archived:
        sdk.beta.sessions.archive(session_id)
    assert not [d for d in Runner(api, stage, session_id, look_up).join() if d.posted]


def test_of_two_runners_one_posts_the_result(api: str, sdk: Anthropic, stage: Stage) -> None:
    both = threading.Barrier(2, timeout=SECONDS)
    answers: list[str] = []

    @beta_async_tool(name="look_up")
    async def different(n: int) -> str:
        """Look up a number, with a different answer each time."""
        answers.append(f"it is {n + len(answers)}")
        mine = answers[-1]
        await asyncio.to_thread(both.wait)
        return mine

    session_id = prepare(sdk)
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    runners = [Runner(api, stage, session_id, different) for _ in range(2)]
    results(stage, session_id)
    stage.reply(session_id, say("Done."))
    posted = [one.posted for runner in runners for one in runner.join()]
    assert sorted(posted) == [False, True]
    assert len(results(stage, session_id)) == 1
    assert stage.result(theirs) in answers
