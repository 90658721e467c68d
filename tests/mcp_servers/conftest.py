"""MCP servers to be called: our own test server over pipes and HTTP, one that lies, and some that others wrote."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import installing
import psutil
import pytest
import warm
from mcp_servers.lying import Liar

from models.settings import settings
from workers.tools.kinds import Answers, ToolContext, ToolResult
from workers.tools.mcp import connections
from workers.tools.mcp.calling import mcp_tool
from workers.tools.mcp.listing import listing
from workers.tools.mcp.servers import Server
from workers.tools.output import OutputSoFar

PROGRAM = Path(__file__).with_name("server.py")
NPM = Path(__file__).parent / "npm"
PYPI = ("mcp-server-time==2026.10.19",)
PROXY = ("mcp-proxy==0.13.0",)
"""Serves a command over HTTP; it needs another release of the protocol's package than the servers do."""

PIPED = Server("piped", command=sys.executable, args=(str(PROGRAM), "stdio"), ours=True)
SMALL = Server("small", command=sys.executable, args=("-I", "-S", str(PROGRAM.with_name("small.py"))), ours=True)


def wait_for(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait until the condition is true. Fails after the seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition is not true after {seconds} s"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """True if the process runs. A zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Caller:
    """Calls tools of one server."""

    def __init__(self, server: Server, *listeners: Callable[[str], object]) -> None:
        self.server = server
        self.listeners = listeners

    def entry(self, tool: str) -> dict[str, object]:
        """Return the tool's entry in a listing of a server that is not trusted."""
        described = {"description": "", "input_schema": {"type": "object"}, "effect": "write", "idempotent": False}
        nothing = {"seconds": None, "prompt": None, "policy": None, "queue": None, "workdir": False, "annotations": {}}
        return {"name": tool, **described, **nothing}

    def context(self, **more: object) -> ToolContext:
        return ToolContext(**{"call_id": "toolu_1", "session_id": "sesn_1", "root": Path("/"), "seconds": 20.0, **more})  # type: ignore[arg-type]

    def run(self, context: ToolContext, tool: str, **arguments: object) -> ToolResult:
        return mcp_tool(self.server, self.entry(tool), *self.listeners).run(context, arguments)

    def call(self, tool: str, **arguments: object) -> ToolResult:
        return self.run(self.context(), tool, **arguments)

    def answer(self, tool: str, answers: Answers) -> ToolResult:
        return self.run(self.context(attempt=2, answers=answers, workspace_id="wrkspc_other"), tool)  # another connection


class Background:
    """A call in a thread of its own."""

    def __init__(self, caller: Caller, tool: str, *, seconds: float = 20.0, **arguments: object) -> None:
        self.context = caller.context(seconds=seconds, output=OutputSoFar())
        self.result: ToolResult | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(caller, tool, arguments))
        self._thread.start()

    def _run(self, caller: Caller, tool: str, arguments: dict[str, object]) -> None:
        try:
            self.result = caller.run(self.context, tool, **arguments)
        except Exception as error:  # noqa: BLE001 - for the test to look at
            self.error = error

    def end(self) -> "ToolResult | Exception":
        """Wait for the end of the call, and return its result or its error."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        outcome = self.result or self.error
        assert outcome is not None
        return outcome


def text(result: ToolResult) -> str:
    """The result's texts."""
    return "\n".join(block["text"] for block in result.content if block["type"] == "text")


@pytest.fixture(autouse=True)
def _fresh_settings() -> Iterator[None]:
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.fixture
def set_environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Change the settings."""

    def change(**variables: object) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        settings.cache_clear()

    return change


@pytest.fixture(scope="package", autouse=True)
def _no_connections_left() -> Iterator[None]:
    yield
    connections.close_all()


@pytest.fixture
def small() -> Caller:
    """A command that starts at once."""
    return Caller(SMALL)


@pytest.fixture
def piped() -> Caller:
    """Our server as a command; one process for all tests, unless one ends it."""
    return Caller(PIPED)


def serve(folder: Path, *words: str) -> tuple[warm.Process, str]:
    """Our server over HTTP, and its URL."""
    port = folder / "port"
    with (folder / "log").open("wb") as log:
        process = warm.start([sys.executable, str(PROGRAM), "http", str(port), *words], dict(os.environ), log)
    wait_for(lambda: port.exists() or process.poll() is not None, 30)
    return process, f"http://127.0.0.1:{port.read_text()}/mcp"


def _served(factory: pytest.TempPathFactory, *words: str) -> Iterator[Caller]:
    process, url = serve(factory.mktemp("mcp"), *words)
    yield Caller(Server("-".join(["served", *words]), url, ours=True))
    process.kill()
    process.wait()


@pytest.fixture(scope="package")
def modern(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """Our server over HTTP, speaking all versions."""
    yield from _served(tmp_path_factory)


@pytest.fixture(scope="package")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """Our server over HTTP, speaking the versions with a handshake only."""
    yield from _served(tmp_path_factory, "legacy")


@pytest.fixture(params=["piped", "modern", "legacy"])
def caller(request: pytest.FixtureRequest) -> Caller:
    """Each of these servers."""
    caller: Caller = request.getfixturevalue(request.param)
    return caller


@pytest.fixture
def liar() -> Iterator[Liar]:
    """An HTTP server whose answers a test chooses. Closes the connections to it, and keeps our command for the next test."""
    with Liar() as lying:
        yield lying
        connections.in_thread(close_all_but_piped).result(20)


async def close_all_but_piped(connections: connections.Connections) -> None:
    """Close the idle connections to all servers except our command, whose start takes a second of CPU time."""
    others = [connection for connection, (server, _) in connections._idle.items() if server != PIPED.key]
    for connection in others:
        connections._drop(connection)
    for connection in others:
        await connection.close()


@pytest.fixture(scope="package")
def npm_servers() -> Path:
    """A folder with the programs of the npm servers, as the lock file has them."""
    return installing.from_npm("mcp-npm", NPM) / "node_modules" / ".bin"


@pytest.fixture(scope="package")
def pypi_servers() -> Path:
    """A folder with the programs of the PyPI servers."""
    return _from_pypi(PYPI)


@pytest.fixture(scope="package")
def pypi_proxy() -> Path:
    """PyPI's mcp-proxy."""
    return _from_pypi(PROXY) / "mcp-proxy"


def _from_pypi(packages: tuple[str, ...]) -> Path:
    def install(folder: Path) -> None:
        uv = [sys.executable, "-m", "uv"]
        installing.run(*uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder, folder=folder)
        installing.run(*uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *packages, folder=folder)

    return installing.installed("mcp-pypi", json.dumps([packages, sys.version]).encode(), install) / "bin"


def tools_of(server: Server) -> dict[str, dict[str, object]]:
    """Its listing, by name."""
    return {entry["name"]: entry for entry in listing(server)}
