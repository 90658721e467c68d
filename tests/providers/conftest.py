"""The stand-in model as a process of its own, and a provider that is told to use it."""

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest

from models.settings import settings
from models.settings.providers import ProviderEntry, registry
from workers.providers import ModelRequest, Provider, provider_for

HOUSE = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def standin() -> Iterator[str]:
    """Its address."""
    started = [sys.executable, "-m", "deploy.standin", "--port", "0"]
    with subprocess.Popen(started, cwd=HOUSE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout
        ready = process.stdout.readline()
        found = re.search(r"http://\S+", ready)
        assert found, ready
        yield found[0]
        process.terminate()


@pytest.fixture
def claude(standin: str) -> Iterator[anthropic.Anthropic]:
    """The official client, at the stand-in."""
    with anthropic.Anthropic(api_key="sk-test", base_url=standin, max_retries=0) as client:
        yield client


@pytest.fixture
def http(standin: str) -> Iterator[httpx.Client]:
    """A plain client, for what the official one would not send."""
    with httpx.Client(base_url=standin, headers={"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}) as client:
        yield client


@pytest.fixture
def wire() -> str:
    """The wire that a file's tests speak. A file about all wires has a fixture of this name with parameters."""
    return "anthropic"


@pytest.fixture
def use_model_at(monkeypatch: pytest.MonkeyPatch, wire: str) -> Iterator[Callable[..., Provider]]:
    """Returns the provider for an address: Anthropic's by the environment, another by an entry with these fields."""

    def use(address: str, **fields: Any) -> Provider:
        settings.cache_clear()
        if fields or wire == "openai":
            base_url = f"{address}/v1" if wire == "openai" else address
            entry = {"name": wire, "kind": wire, "base_url": base_url, "models": ["*"], "api_key_env": "LOCAL_KEY"} | fields
            return provider_for(ProviderEntry.model_validate(entry), "sk-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        settings.cache_clear()
        return provider_for(registry()[0], os.environ.get("ANTHROPIC_API_KEY"))

    yield use
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def provider(standin: str, use_model_at: Callable[[str], Provider]) -> Provider:
    return use_model_at(standin)


_NUMBERS = itertools.count()
"""A name of its own for each request's model, because some state of a process is kept by model."""


@pytest.fixture
def request_of(request: pytest.FixtureRequest) -> Callable[..., ModelRequest]:
    """A request with a prompt that no other test sends, or with the messages given."""

    def make(prompt: str | list[dict[str, Any]], **changes: Any) -> ModelRequest:
        messages = prompt
        if isinstance(prompt, str):
            messages = [{"role": "user", "content": f"{prompt}\n\n({request.node.nodeid})"}]
        plain: dict[str, Any] = {
            "model": f"stand-in-{next(_NUMBERS)}",
            "system": None,
            "messages": messages,
            "tools": [],
            "max_tokens": 4000,
        }
        return ModelRequest(**{**plain, **changes})

    return make


@pytest.fixture
def endless(answering: Callable[..., str]) -> Callable[[bytes], str]:
    """Starts a server whose streams never end by themselves. Returns its address."""

    def start(chunk: bytes) -> str:
        return answering(chunk, times=1_000_000)

    return start


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """Starts a server that answers everything with the same bytes, for what no script asks for. Returns its address."""
    started: list[ThreadingHTTPServer] = []

    def start(body: bytes, status: int = 200, times: int = 1, **headers: str) -> str:
        class Canned(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(status)
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                for name, value in {"content-type": "text/event-stream", **named}.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):
                    for _ in range(times):
                        self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Canned)
        started.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.fixture
def refusing() -> Iterator[Callable[[str], tuple[str, list[dict[str, Any]]]]]:
    """Starts a server that refuses a parameter as OpenAI's API does. Returns its address and the bodies of its requests."""
    started: list[ThreadingHTTPServer] = []

    def start(parameter: str) -> tuple[str, list[dict[str, Any]]]:
        bodies: list[dict[str, Any]] = []

        class Picky(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                bodies.append(body | {"header": self.headers.get("authorization"), "team": self.headers.get("x-team")})
                message = f"Unsupported parameter: '{parameter}' is not supported with this model."
                answer: dict[str, Any] = {"error": {"message": message, "param": parameter, "code": "unsupported_parameter"}}
                if parameter not in body:
                    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
                    answer = {"model": "m", "choices": [choice]}
                self.send_response(400 if parameter in body else 200)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Picky)
        started.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", bodies

    yield start
    for server in started:
        server.shutdown()
        server.server_close()
