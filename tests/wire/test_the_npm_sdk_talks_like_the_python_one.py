"""The same conversation through both official SDKs gives the same answers. Skipped with a notice if npm is missing."""

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, beta_async_tool
from crashes.processes import wait_for
from doors.served import MODEL, confirmation, key, message
from rows.stage import Stage, call, say
from wire.running import SCHEMA, SECONDS, Runner, results

from models.session.tool_call.row import ToolCall


def play(stage: Stage, session_id: str) -> None:
    """Play the workers' part: a call that asks, then a call of a client tool, then an end."""
    [ours] = stage.reply(session_id, say("I will look."), call())
    wait_for("the call is allowed", lambda: stage.get(ToolCall, ours.id).status == "queued")
    stage.run_call(ours, "fine")
    [theirs] = stage.reply(session_id, call("look_up", n=42))
    results(stage, session_id)
    assert stage.result(theirs) == "it is 42"
    stage.reply(session_id, say("Done."))


def by_npm(api: str, stage: Stage, folder: Path) -> dict[str, Any]:
    """Run npm/conversation.mjs. Returns its answers."""
    env = os.environ | {"ASSENT_URL": api, "ASSENT_API_KEY": key(stage)}
    command = ["node", "conversation.mjs"]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        assert node.stdout
        first = node.stdout.readline()
        if first:
            play(stage, json.loads(first)["session"])
        out, err = node.communicate(timeout=SECONDS)
        assert node.returncode == 0, err
    answers: dict[str, Any] = json.loads(out)
    return answers


def by_python(api: str, sdk: Anthropic, stage: Stage) -> dict[str, Any]:
    """Run the same conversation in Python. Returns its answers."""

    @beta_async_tool
    async def look_up(n: int) -> str:
        """Look up a number."""
        return f"it is {n}"

    beta = sdk.beta
    toolset: Any = {"type": "agent_toolset_20260401", "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
    custom: Any = {"type": "custom", "name": "look_up", "description": "d", "input_schema": SCHEMA}
    agent = beta.agents.create(name="A", model=MODEL, tools=[toolset, custom])
    session = beta.sessions.create(agent=agent.id, environment_id=beta.environments.list().data[0].id)
    first: Any = message("Go.")
    streamed = []
    with beta.sessions.events.stream(session.id, event_deltas=["agent.message"]) as stream:
        runner = Runner(api, stage, session.id, look_up)
        beta.sessions.events.send(session.id, events=[first])
        workers = threading.Thread(target=play, args=(stage, session.id), daemon=True)
        workers.start()
        for event in stream:
            streamed.append(event.type)
            if event.type == "agent.tool_use":
                allow: Any = confirmation(event.id)
                beta.sessions.events.send(session.id, events=[allow])
            if event.type == "session.status_idle" and event.stop_reason.type == "end_turn":
                break
    workers.join(SECONDS)
    with pytest.raises(anthropic.NotFoundError) as missing:
        beta.sessions.retrieve("sesn_none")
    return {
        "dispatched": [one.name for one in runner.join() if one.posted],
        "streamed": streamed,
        "listed": [event.type for event in beta.sessions.events.list(session.id, limit=5)],
        "thread": beta.sessions.threads.list(session.id).data[0].status,
        "missing": [type(missing.value).__name__, missing.value.status_code, bool(missing.value.request_id)],
        "ended": beta.sessions.archive(session.id).status,
    }


def test_both_sdks_get_the_same_answers(api: str, sdk: Anthropic, stage: Stage, npm_sdk: Path) -> None:
    npm = by_npm(api, stage, npm_sdk)
    assert npm == by_python(api, sdk, stage)
    assert npm["dispatched"] == ["look_up"]
    assert npm["listed"] == npm["streamed"]
    assert npm["listed"][-1] == "session.status_idle"
