"""An API server as in production: gunicorn with gevent in its own process, on the test process's database and Redis."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import warm
from doors import described
from rows.stage import Stage

from models.database.transactions import transaction
from models.workspace.api_key import SCOPES, ApiKey, NewKey

MODEL = "claude-opus-5-5"
SIGN_IN_WORKSPACE = "wrkspc_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"
"""The id of the workspace of the fixture `sign_in_stage`."""
PARTS = {f"/docs/{name}" for name in ("docs.js", "docs.css", "swagger-ui-bundle.js", "swagger-ui.css")}
"""The files of the page `/docs`."""
KEYLESS = {"/", "/healthz", "/readyz", "/openapi.json", "/docs"} | PARTS
"""Routes that need no key: they read no workspace."""
FIRST, RETRY = ({"x-stainless-retry-count": retries} for retries in "01")
"""The headers of an SDK's first request and of its retry."""


@contextmanager
def served(log: Path, port: int = 0, graceful: int = 1, **env: str) -> Iterator[str]:
    """Start a server. Returns its URL once it answers. `graceful`: seconds that requests have at its end."""
    with socket.create_server(("127.0.0.1", port)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "api:create_app()", "--config", "python:api.serving"]
    command += ["--bind", f"127.0.0.1:{port}", "--graceful-timeout", str(graceful), "--no-control-socket"]
    env = {"ASSENT_PUBLIC_URL": f"http://localhost:{port}"} | env
    with log.open("wb") as out:
        process = warm.start(command, os.environ | env, out)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(url: str, process: warm.Process, log: Path) -> None:
    deadline = time.monotonic() + 90
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            httpx2.get(f"{url}/healthz")
        except httpx2.HTTPError:
            time.sleep(0.05)
        else:
            return


def key(stage: Stage, *scopes: str) -> str:
    """Create an API key in the stage's workspace, with every scope by default. Returns its secret."""
    with transaction(stage.workspace_id) as db:
        _row, secret = ApiKey.create(db, NewKey("test", scopes=frozenset(scopes or SCOPES)))
        return secret


class Caller(httpx2.Client):
    """An HTTP client of one workspace. Checks every response against the OpenAPI document."""

    def __init__(self, url: str, secret: str, **headers: str) -> None:
        hooks: dict[str, list[Any]] = {"response": [partial(described.check, url)]}
        super().__init__(base_url=url, headers={"x-api-key": secret} | headers, timeout=20, event_hooks=hooks)

    def agent(self, **more: Any) -> dict[str, Any]:
        """Create an agent."""
        return good(self.post("/v1/agents", json={"name": "Agent", "model": MODEL} | more))

    def environment_id(self) -> str:
        """Return the id of the built-in environment."""
        environment_id: str = good(self.get("/v1/environments"))["data"][-1]["id"]
        return environment_id

    def session(self, agent: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Create a session."""
        agent = agent or self.agent(tools=[{"type": "agent_toolset_20260401"}])
        return good(self.post("/v1/sessions", json={"agent": agent["id"], "environment_id": self.environment_id()} | more))

    def tell(self, session_id: str, *events: dict[str, Any], **headers: str) -> httpx2.Response:
        """Post events."""
        return self.post(f"/v1/sessions/{session_id}/events", json={"events": list(events)}, headers=headers)

    def say(self, session_id: str, text: str = "Do it.") -> dict[str, Any]:
        """Post a message. Returns the stored event."""
        event: dict[str, Any] = good(self.tell(session_id, message(text)))["data"][0]
        return event

    def events(self, session_id: str, **query: Any) -> list[dict[str, Any]]:
        """Return one page of events."""
        page: list[dict[str, Any]] = good(self.get(f"/v1/sessions/{session_id}/events", params=query))["data"]
        return page


def message(text: str = "Do it.") -> dict[str, Any]:
    """Return a `user.message` event."""
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def confirmation(tool_use_id: str, result: str = "allow", **more: Any) -> dict[str, Any]:
    """Return a `user.tool_confirmation` event."""
    return {"type": "user.tool_confirmation", "tool_use_id": tool_use_id, "result": result} | more


def good(response: httpx2.Response) -> dict[str, Any]:
    """Assert that the status is 200. Returns the body."""
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def bad(response: httpx2.Response, status: int, *words: str) -> dict[str, Any]:
    """Assert that the response is an error with this status whose message contains these words. Returns the error."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body["type"] == "error"
    assert body["request_id"] == response.headers["request-id"]
    for word in words:
        assert word in body["error"]["message"], body["error"]["message"]
    if status in {429, 503}:
        assert response.headers["retry-after"]
    elif status < 500:
        assert response.headers["x-should-retry"] == "false"
    error: dict[str, Any] = body["error"]
    return error
