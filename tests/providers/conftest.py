"""The stand-in model in its own process, providers that use it, and servers that return fixed responses."""

import contextlib
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from crashes.processes import stand_in

from models.settings import settings
from models.settings.providers import ProviderEntry, registry
from workers.providers import ModelRequest, Provider, provider_for


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The stand-in's URL."""
    with stand_in(tmp_path_factory.mktemp("standin")) as url:
        yield url


@pytest.fixture
def claude(standin: str) -> Iterator[anthropic.Anthropic]:
    """The official client, at the stand-in."""
    with anthropic.Anthropic(api_key="sk-test", base_url=standin, max_retries=0) as client:
        yield client


@pytest.fixture
def http(standin: str) -> Iterator[httpx2.Client]:
    """A plain HTTP client, for requests that the official client would not send."""
    with httpx2.Client(base_url=standin, headers={"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}) as client:
        yield client


@pytest.fixture
def wire() -> str:
    """The wire of a file's tests. A file about all wires overrides this fixture with parameters."""
    return "anthropic"


@pytest.fixture
def use_model_at(monkeypatch: pytest.MonkeyPatch, wire: str) -> Iterator[Callable[..., Provider]]:
    """A function that returns the provider at an address: Anthropic's by environment variables, others by an entry."""

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
    """The provider at the stand-in."""
    return use_model_at(standin)


@pytest.fixture
def write_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """A function that has ASSENT_PROVIDERS name a file with these entries, or with `text`, and sets the variables `env`."""
    numbers = itertools.count()

    def write(*entries: Any, text: str | None = None, **env: str) -> None:
        path = tmp_path / f"providers-{next(numbers)}.json"
        path.write_text(json.dumps({"providers": entries}) if text is None else text)
        for name, value in ({"ASSENT_PROVIDERS": str(path)} | env).items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()

    yield write
    monkeypatch.undo()
    settings.cache_clear()


_NUMBERS = itertools.count()
"""Gives each request's model its own name, because a process keeps some state by model."""


@pytest.fixture
def request_of(request: pytest.FixtureRequest) -> Callable[..., ModelRequest]:
    """A function that returns a request with a prompt that no other test sends, or with these messages."""

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


class Quiet(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Do nothing."""


@contextlib.contextmanager
def serving(handler: type[Quiet]) -> Iterator[str]:
    """Run a server. Returns its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """A function that starts a server whose every response is `times` these bytes, and returns its URL."""

    def start(body: bytes, status: int = 200, times: int = 1, **headers: str) -> str:
        class Canned(Quiet):
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

        return stack.enter_context(serving(Canned))

    with contextlib.ExitStack() as stack:
        yield start


@pytest.fixture
def refusing() -> Iterator[Callable[[str], tuple[str, list[dict[str, Any]]]]]:
    """A function that starts a server which refuses a parameter as OpenAI's API does.

    The function returns the server's URL, and the list of the requests' bodies.
    """

    def start(parameter: str) -> tuple[str, list[dict[str, Any]]]:
        bodies: list[dict[str, Any]] = []

        class Picky(Quiet):
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

        return stack.enter_context(serving(Picky)), bodies

    with contextlib.ExitStack() as stack:
        yield start
