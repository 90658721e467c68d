"""A whole Assent for tests: `assent up` in a folder of its own, with a model that follows the script in a message."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from assent.testing import server

START_SECONDS = 180.0
"""How long the start may take."""
WAIT_SECONDS = 60.0
"""How long a session may take until a call waits, or until it rests."""
_LOOK_SECONDS = 0.1
_ENDS = ("completed", "error")
_MODEL = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ASSENT_PROVIDERS", "DATABASE_URL", "REDIS_URL")
"""Variables of the tests' environment that would replace the stand-in model or the embedded servers."""

T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True)
class Stack:
    """A running Assent. `url` and `api_key` also serve the clients of the Messages API's makers."""

    url: str
    api_key: str
    """A key with all scopes."""
    folder: Path
    """Its data, with its log."""

    def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """Send a request, and return the response's JSON. Raises RuntimeError for an error, with the response's text."""
        headers = {"x-api-key": self.api_key, "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - its own address
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=WAIT_SECONDS) as response:
                return dict(json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None

    def agent(self, toolset: str, **fields: Any) -> str:
        """Create an agent that has a toolset of the server, and return its id. The tools are called `mcp__TOOLSET__FUNCTION`.

        `fields` are further fields of `POST /v1/agents`, such as `permission_policy`.
        """
        of_toolset = {
            "name": f"Test of {toolset}",
            "model": "claude-opus-4-5",
            "mcp_servers": [{"type": "url", "name": toolset, "url": f"assent:{toolset}"}],
            "tools": [{"type": "mcp_toolset", "mcp_server_name": toolset}],
        }

        def create() -> str | None:
            try:
                return str(self.request("POST", "/v1/agents", of_toolset | fields)["id"])
            except RuntimeError as error:
                if "is unknown here" not in str(error):  # the worker has not announced its toolsets yet
                    raise
                return None

        return _wait(f"no worker has the toolset {toolset}; {self.folder / 'log'} says why", create)

    def begin(self, agent_id: str, script: str) -> str:
        """Begin a session with a message for the stand-in model, and return the session's id.

        Each line of the script is a step, such as `call mcp__orders__refund {"order_id": "o1"}` or `say Done.`
        """
        environment = self.request("GET", "/v1/environments")["data"][0]["id"]
        session = self.request("POST", "/v1/sessions", {"agent": agent_id, "environment_id": environment})["id"]
        message = {"type": "user.message", "content": [{"type": "text", "text": script}]}
        self.request("POST", f"/v1/sessions/{session}/events", {"events": [message]})
        return str(session)

    def approval(self, session_id: str) -> Json:
        """Wait until a call of the session waits for a decision, and return its approval. Raises TimeoutError."""
        path = f"/v1/approvals?status=pending&session_id={session_id}"
        return _wait(f"no call of {session_id} waits for a decision", lambda: next(iter(self.request("GET", path)["data"]), None))

    def decide(self, approval: Json, result: str = "allow", **fields: Any) -> Json:
        """Decide an approval by `allow` or `deny`, and return the decided approval. `fields` are those of a decision."""
        return self.request("POST", f"/v1/approvals/{approval['id']}/decision", {"result": result, **fields})

    def results(self, session_id: str) -> list[Json]:
        """Wait until the session's run has ended, and return the events of its tools' results, in order. Raises TimeoutError."""
        path = f"/v1/sessions/{session_id}"
        _wait(f"the run of {session_id} does not end", lambda: self.request("GET", path)["state"] in _ENDS or None)
        events = self.request("GET", f"{path}/events?limit=1000")["data"]
        return [event for event in events if event["type"] in {"agent.tool_result", "agent.mcp_tool_result"}]


@contextlib.contextmanager
def running(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """Run a whole Assent until the block ends, with its data in `folder`. A start takes 10 to 30 seconds.

    `environment` has settings, such as `{"ASSENT_TOOLSETS": "shop.tools:orders"}`. Modules of toolsets are found in the current
    folder, and run in the interpreter of the tests. Raises ServerMissing, and RuntimeError if Assent does not start.
    """
    variables = {name: value for name, value in os.environ.items() if name not in _MODEL} | dict(environment or {})
    if places := variables.get("ASSENT_TOOLSETS"):
        variables["ASSENT_TOOLSETS"] = " ".join(map(_with_this_python, places.split()))
    folder.mkdir(parents=True, exist_ok=True)
    log, ready = folder / "log", folder / "up.json"
    words = server.command("up", "--port", str(_free_port()), "--data-dir", str(folder), "--no-sample")
    with log.open("wb") as output, _start(words, variables, output) as process:
        try:
            _wait(f"Assent does not start; {log} says why", lambda: ready.exists() or _ended(process, log) or None, START_SECONDS)
            facts = json.loads(ready.read_text("utf-8"))
            yield Stack(facts["url"], facts["api_key"], folder)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


def _start(words: list[str], variables: dict[str, str], output: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(words, env=variables, stdout=output, stderr=output)  # noqa: S603 - the server's command


def _with_this_python(place: str) -> str:
    """Return the place of a toolset with this interpreter, if the server has another one and the place names none."""
    return place if "@" in place or server.python() == sys.executable else f"{place}@{sys.executable}"


def _ended(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"Assent did not start: {log.read_text('utf-8', 'replace').strip()[-2000:]}")
    return False


def _wait(failure: str, look: Callable[[], T | None], seconds: float = WAIT_SECONDS) -> T:
    until = time.monotonic() + seconds
    while (value := look()) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"{failure} within {seconds:g} s")
        time.sleep(_LOOK_SECONDS)
    return value


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
