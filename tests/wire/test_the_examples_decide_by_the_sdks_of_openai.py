"""The examples talk to an agent by OpenAI's SDKs in Python and npm, and decide what it may do."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from crashes.processes import wait_for
from doors.served import key
from rows.stage import Stage, call, say
from warm import HOUSE
from wire.running import SECONDS
from wire.talking import Talk, talking

from examples import chat
from examples.decisions import decision

ASKED = "Run shell command: ls"


def play(talk: Talk) -> list[Any]:
    """Play the worker's part: two calls, of which one is allowed, and an end. Returns the approvals."""
    allowed, _ = talk.reply(say("I will look."), call(command="ls"), call(command="rm x"))
    wait_for("decisions", lambda: all(each.status != "pending" for each in talk.stage.approvals(talk.session_id)))
    talk.stage.run_call(allowed)
    talk.reply(say("Done."))
    return [(each.status, each.decision) for each in talk.stage.approvals(talk.session_id)]


DECIDED = [("allowed", {"result": "allow", "scope": "session"}), ("denied", {"result": "deny", "deny_message": "Keep x."})]


def test_the_python_example_decides(talk: Talk, capsys: Any) -> None:
    def decide(call_id: str, question: dict[str, Any]) -> dict[str, Any]:
        if question["message"] == ASKED:
            return decision(call_id, "approve", scope="session")
        return decision(call_id, "deny", message="Keep x.")

    pending = talk.pool.submit(chat.talk, talk.sdk, talk.model, "Go.", decide)
    assert play(talk) == DECIDED
    assert pending.result() == "Done."
    assert capsys.readouterr().out == "I will look.Done."


PROGRAM = """
import OpenAI from 'openai';
import { talk } from './chat.mjs';
import { decision } from './decisions.js';
const client = new OpenAI({ baseURL: `${process.env.ASSENT_URL}/v1`, apiKey: process.env.ASSENT_API_KEY, maxRetries: 0 });
const [{ id: model }] = (await client.models.list()).data;
const decide = (id, question) =>
  question.message === process.env.ASKED
    ? decision(id, 'approve', { scope: 'session' })
    : decision(id, 'deny', { message: 'Keep x.' });
console.log(JSON.stringify(await talk(client, model, 'Go.', decide)));
"""
TYPES = """
import type { ChatCompletionMessage, ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import { asks, decision } from './decisions.js';
export const fits: (message: ChatCompletionMessage) => ChatCompletionMessageParam[] = (message) =>
  [...asks(message)].map(([id, ask]) => decision(id, ask.options.includes('once') ? 'approve' : 'deny'));
"""


@pytest.fixture(scope="module")
def folder(npm_sdk: Path) -> Path:
    """The folder of the npm SDK with the example's helper, compiled. The compiler checks that it fits the SDK's types."""
    shutil.copy(HOUSE / "examples/decisions.ts", npm_sdk)
    (npm_sdk / "types.ts").write_text(TYPES)
    compiler = ["node_modules/.bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck"]
    checked = subprocess.run([*compiler, "decisions.ts", "types.ts"], cwd=npm_sdk, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    return npm_sdk


def test_the_npm_example_decides_and_its_helper_fits_the_sdk_s_types(api: str, stage: Stage, folder: Path) -> None:
    (folder / "program.mjs").write_text(PROGRAM)
    example = (HOUSE / "examples/chat.mjs").read_text("utf-8")
    (folder / "chat.mjs").write_text(example.replace("./decisions.ts", "./decisions.js"))
    assert run(api, stage, folder, "program.mjs") == ("Done.", "I will look.Done.")


ANSWERS = """
import OpenAI from 'openai';
import { asks, decision } from './decisions.js';
const client = new OpenAI({ baseURL: `${process.env.ASSENT_URL}/v1`, apiKey: process.env.ASSENT_API_KEY, maxRetries: 0 });
const [{ id: model }] = (await client.models.list()).data;
const messages = [{ role: 'user', content: 'Go.' }];
const metadata = { approvals: 'tools' };
for (;;) {
  const { choices: [{ message, finish_reason }], assent } = await client.chat.completions.create({ model, messages, metadata });
  messages.push(message);
  metadata.session_id = assent.session_id;
  if (finish_reason !== 'tool_calls') break;
  for (const [id, ask] of asks(message)) {
    const allow = ask.message === process.env.ASKED;
    messages.push(allow ? decision(id, 'approve', { scope: 'session' }) : decision(id, 'deny', { message: 'Keep x.' }));
  }
}
console.log(JSON.stringify(messages.at(-1).content));
"""


def test_the_npm_sdk_decides_without_a_stream(api: str, stage: Stage, folder: Path) -> None:
    (folder / "answers.mjs").write_text(ANSWERS)
    assert run(api, stage, folder, "answers.mjs") == ("Done.", "")


def run(api: str, stage: Stage, folder: Path, program: str) -> tuple[str, str]:
    """Run a program that talks and decides, and play the worker's part. Returns its answer and its errors."""
    env = os.environ | {"ASSENT_URL": api, "ASSENT_API_KEY": key(stage), "ASKED": ASKED}
    pipe = subprocess.PIPE
    with talking(api, stage) as talk:
        with subprocess.Popen(["node", program], cwd=folder, env=env, stdout=pipe, stderr=pipe, text=True) as node:
            try:
                assert play(talk) == DECIDED
                out, err = node.communicate(timeout=SECONDS)
            finally:
                node.kill()
        assert node.returncode == 0, err
    return json.loads(out), err
