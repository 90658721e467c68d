"""The stand-in model as a process of its own, and a provider that is told to use it."""

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
def use_model_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Provider]]:
    """Points the settings at an address and returns the provider for it."""

    def use(address: str) -> Provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        settings.cache_clear()
        return provider_for("stand-in")

    yield use
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def provider(standin: str, use_model_at: Callable[[str], Provider]) -> Provider:
    return use_model_at(standin)


@pytest.fixture
def request_of(request: pytest.FixtureRequest) -> Callable[..., ModelRequest]:
    """A request with a prompt that no other test sends, or with the messages given."""

    def make(prompt: str | list[dict[str, Any]], **changes: Any) -> ModelRequest:
        messages = prompt
        if isinstance(prompt, str):
            messages = [{"role": "user", "content": f"{prompt}\n\n({request.node.nodeid})"}]
        plain: dict[str, Any] = {"model": "stand-in", "system": None, "messages": messages, "tools": [], "max_tokens": 4000}
        return ModelRequest(**{**plain, **changes})

    return make


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """Starts a server that answers everything with the same bytes, for what no script asks for. Returns its address."""
    started: list[ThreadingHTTPServer] = []

    def start(body: bytes, status: int = 200, **headers: str) -> str:
        class Canned(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(status)
                for name, value in {"content-type": "text/event-stream", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
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
