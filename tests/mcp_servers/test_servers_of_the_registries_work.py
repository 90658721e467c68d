"""MCP servers as others wrote and published them, over both transports."""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp_servers.conftest import Caller, text, tools_of, wait_for

from workers.tools.mcp.servers import Server


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def serving(command: Callable[[int], list[str]]) -> Iterator[str]:
    """The URL of a server that runs until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command(port), env={**os.environ, "PORT": str(port)}, stdout=nowhere, stderr=nowhere)
    try:
        wait_for(lambda: _answers(port), 20)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(params=["stdio", "streamableHttp"])
def everything(request: pytest.FixtureRequest, npm_servers: Path) -> Iterator[Caller]:
    """npm's @modelcontextprotocol/server-everything."""
    program = str(npm_servers / "mcp-server-everything")
    if request.param == "stdio":
        yield Caller(Server("everything", command=program, ours=True))
        return
    with serving(lambda _port: [program, request.param]) as url:
        yield Caller(Server("everything", url, ours=True))


@pytest.fixture(params=["stdio", "streamableHttp"])
def clock_server(request: pytest.FixtureRequest, pypi_servers: Path, pypi_proxy: Path) -> Iterator[Caller]:
    """PyPI's mcp-server-time; over HTTP behind PyPI's mcp-proxy."""
    command = [str(pypi_servers / "mcp-server-time"), "--local-timezone=UTC"]
    if request.param == "stdio":
        yield Caller(Server("time", command=command[0], args=tuple(command[1:]), ours=True))
        return
    with serving(lambda port: [str(pypi_proxy), "--host", "127.0.0.1", "--port", str(port), "--", *command]) as url:
        yield Caller(Server("time", url, ours=True))


def test_npm_s_server_everything(everything: Caller) -> None:
    tools = tools_of(everything.server)
    assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= tools.keys()
    assert text(everything.call("echo", message="hi")) == "Echo: hi"
    assert [block["type"] for block in everything.call("get-tiny-image").content] == ["text", "image", "text"]
    weather = everything.call("get-structured-content", location="New York")
    assert weather.structured == json.loads(text(weather))
    assert everything.call("echo").is_error
    context = everything.context()
    assert not everything.run(context, "trigger-long-running-operation", duration=0.2, steps=2).is_error
    assert context.output.texts() == {"stdout": "1/2\n2/2\n"}


def test_npm_s_server_filesystem(npm_servers: Path, tmp_path: Path) -> None:
    program = str(npm_servers / "mcp-server-filesystem")
    files = Caller(Server("files", command=program, args=(str(tmp_path),), trusted=True, ours=True))
    tools = tools_of(files.server)
    assert (tools["read_text_file"]["effect"], tools["write_file"]["effect"]) == ("read", "write")
    assert not files.call("write_file", path=str(tmp_path / "a"), content="words").is_error
    assert (tmp_path / "a").read_text() == "words"
    assert text(files.call("read_text_file", path=str(tmp_path / "a"))) == "words"
    assert "Access denied" in text(files.call("read_text_file", path="/etc/passwd"))


def test_pypi_s_server_time(clock_server: Caller) -> None:
    assert "get_current_time" in tools_of(clock_server.server)
    assert json.loads(text(clock_server.call("get_current_time", timezone="Europe/Paris")))["timezone"] == "Europe/Paris"
    assert clock_server.call("get_current_time", timezone="Nowhere").is_error
