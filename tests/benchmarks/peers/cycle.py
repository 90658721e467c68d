"""What all peers share: a model call, the command in its sandbox, what a reader hears, and the HTTP front.

`benchmarks.beside_peers` sets the environment:

    PEER_MODEL      the stand-in model, which speaks the Messages API
    PEER_DATABASE   a database of the peer's own
    PEER_REDIS      a Redis database of the peer's own
    PEER_FRONT      the address of `front`
    PEER_SANDBOX    {"argv": ["bwrap", ...], "files": {"248": path, ...}, "folder": path}: Assent's own arguments for one command.
                    bubblewrap reads some files from descriptors. `SESSION` stands for the session's id.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from anthropic import Anthropic
from flask import Flask, Response
from redis import Redis

Message = dict[str, Any]

_SANDBOX = json.loads(os.environ["PEER_SANDBOX"])
_BASH = {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {"command": {}}}}
PROMPT = {"role": "user", "content": 'call bash {"command": "echo done"}\nthen\nsay done'}
model = Anthropic(base_url=os.environ["PEER_MODEL"], api_key="bench", max_retries=0)
redis = Redis.from_url(os.environ["PEER_REDIS"], socket_timeout=None)


def ask(messages: list[Message]) -> Message:
    """Return the model's reply: first a call of `bash`, then text."""
    with model.messages.stream(model="claude-bench", max_tokens=1024, tools=[_BASH], messages=messages) as stream:
        content = stream.get_final_message().content
    return {"role": "assistant", "content": [block.model_dump(mode="json", exclude_none=True) for block in content]}


def run(session_id: str, reply: Message) -> Message:
    """Run the command of a reply in the session's own folder. Returns its result as a message."""
    (call,) = [block for block in reply["content"] if block["type"] == "tool_use"]
    assert call["input"] == {"command": "echo done"}, call
    Path(_SANDBOX["folder"].replace("SESSION", session_id)).mkdir(parents=True, exist_ok=True)
    files = {word: os.open(path, os.O_RDONLY) for word, path in _SANDBOX["files"].items()}
    argv = [str(files.get(word, word)).replace("SESSION", session_id) for word in _SANDBOX["argv"]]
    try:
        end = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True, pass_fds=list(files.values()))
    finally:
        for fd in files.values():
            os.close(fd)
    assert end.stdout == "done\n", end
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": end.stdout}]}


def tell(session_id: str, step: str, **facts: str) -> None:
    """Tell the session's reader of a step: `asked` with the address for the decision, `result`, or `done`."""
    redis.publish(session_id, json.dumps({"step": step, **facts}))


def ask_people(session_id: str) -> None:
    """Tell the reader that the front waits for a decision."""
    tell(session_id, "asked", decide=f"{os.environ['PEER_FRONT']}/sessions/{session_id}/decision")


def _steps(session_id: str) -> Iterator[str]:
    with redis.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(session_id)
        yield ": open\n\n"
        for message in channel.listen():
            yield f"data: {message['data'].decode()}\n\n"
            if json.loads(message["data"])["step"] == "done":
                return


def front(start: Callable[[str], object], decide: Callable[[str], object]) -> Flask:
    """Return the HTTP front: start a session, follow it by server-sent events, decide its call."""
    app = Flask("front")

    @app.get("/ready")
    def ready() -> str:
        return "ready"

    @app.get("/sessions/<session_id>/stream")
    def stream(session_id: str) -> Response:
        return Response(_steps(session_id), mimetype="text/event-stream")

    @app.post("/sessions/<session_id>")
    def create(session_id: str) -> tuple[dict[str, str], int]:
        start(session_id)
        return {"id": session_id}, 202

    @app.post("/sessions/<session_id>/decision")
    def decision(session_id: str) -> tuple[dict[str, str], int]:
        decide(session_id)
        return {"id": session_id}, 202

    return app
