"""The same conversation in OpenAI's format through both of OpenAI's SDKs. Skipped with a notice if npm is missing."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import openai
import pytest
from doors.served import key
from rows.stage import Stage, call, say
from wire.running import SECONDS
from wire.talking import LOOK_UP, Talk, content, talking, tool, user


def play(talk: Talk) -> None:
    """Play the worker's part: a call of a client tool, then an end."""
    [theirs] = talk.reply(say("I will look."), call("look_up", n=42))
    talk.begun()
    assert talk.stage.result(theirs) == "it is 42"
    talk.reply(say("Done."))


def by_npm(api: str, stage: Stage, folder: Path) -> dict[str, Any]:
    """Run npm/completions.mjs. Returns its answers."""
    env = os.environ | {"ASSENT_URL": api, "ASSENT_API_KEY": key(stage)}
    pipe = subprocess.PIPE
    with talking(api, stage) as talk:
        with subprocess.Popen(["node", "completions.mjs"], cwd=folder, env=env, stdout=pipe, stderr=pipe, text=True) as node:
            try:
                play(talk)
                out, err = node.communicate(timeout=SECONDS)
            except AssertionError as failed:
                node.kill()
                raise AssertionError(f"{failed}; node printed: {node.communicate()}") from None
            finally:
                node.kill()
        assert node.returncode == 0, err
    answers: dict[str, Any] = json.loads(out)
    return answers


def by_python(api: str, stage: Stage) -> dict[str, Any]:
    """Run the same conversation in Python. Returns its answers."""
    with talking(api, stage) as talk:
        playing = talk.pool.submit(play, talk)
        first = talk.create(user("Go."), tools=[LOOK_UP])
        message = first.choices[0].message
        results = [tool(each.id, f"it is {json.loads(each.function.arguments)['n']}") for each in message.tool_calls]
        talk.session_id = first.assent["session_id"]
        chunks = talk.create(user("Go."), message, *results, tools=[LOOK_UP], stream=True, stream_options={"include_usage": True})
        playing.result()
        talk.session_id = ""
        with pytest.raises(openai.NotFoundError) as refusal:
            talk.create(user("Go."), model="assent/agent_none")
    error = refusal.value
    return {
        "said": message.content,
        "reason": first.choices[0].finish_reason,
        "called": [[each.function.name, json.loads(each.function.arguments)] for each in message.tool_calls],
        "pieces": content(chunks),
        "last": [content(chunks), chunks[-2].choices[0].finish_reason, chunks[-1].usage.total_tokens],
        "missing": [type(error).__name__, error.status_code, error.code, error.param, bool(error.request_id)],
    }


def test_both_sdks_get_the_same_answers(api: str, stage: Stage, npm_sdk: Path) -> None:
    npm = by_npm(api, stage, npm_sdk)
    assert npm == by_python(api, stage)
    assert npm["called"] == [["look_up", {"n": 42}]]
    assert npm["pieces"] == "Done."
