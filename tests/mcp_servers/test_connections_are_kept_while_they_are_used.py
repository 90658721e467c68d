"""A connection is kept between calls until it has been idle. Every thread and every fork may call."""

import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from mcp_servers.conftest import SMALL, Caller, is_alive, text, wait_for
from mcp_servers.lying import Liar, Request

from workers.tools.mcp import connections
from workers.tools.mcp.servers import Server


def pid(caller: Caller) -> int:
    return int(text(caller.call("pid")))


def test_the_same_process_serves_several_calls(small: Caller) -> None:
    assert pid(small) == pid(small)


def test_an_idle_server_is_ended(small: Caller, set_environment: Callable[..., None]) -> None:
    set_environment(ASSENT_MCP_IDLE_SECONDS=0.05)
    first = pid(small)
    wait_for(lambda: not is_alive(first))
    set_environment(ASSENT_MCP_IDLE_SECONDS=60)
    assert pid(small) != first


@pytest.mark.parametrize("served", ["modern", "legacy"])
def test_many_threads_may_call_a_server_at_once(request: pytest.FixtureRequest, served: str) -> None:
    caller: Caller = request.getfixturevalue(served)
    with ThreadPoolExecutor(4) as threads:
        sums = list(threads.map(lambda n: text(caller.call("add", a=n, b=1)), range(12)))
    assert sums == [str(n + 1) for n in range(12)]


def test_many_threads_may_call_a_command_at_once() -> None:
    caller = Caller(replace(SMALL, env={"A_CONNECTION": "of its own"}))
    with ThreadPoolExecutor(8) as threads:
        words = list(threads.map(lambda n: text(caller.call("echo", word=f"word {n}")), range(40)))
    assert words == [f"word {n}" for n in range(40)]


def test_a_forked_process_has_connections_of_its_own(small: Caller) -> None:
    ours = pid(small)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(pid(Caller(SMALL))).encode())
            connections.close_all()
        finally:
            os._exit(0)
    os.close(writer)
    theirs = int(os.read(reader, 100))
    os.close(reader)
    os.waitpid(child, 0)
    assert theirs != ours
    wait_for(lambda: not is_alive(theirs))
    assert pid(small) == ours


def test_workspaces_share_no_connection_over_http(liar: Liar) -> None:
    liar.on_call(lambda request: request.result({"content": []}))
    caller = Caller(liar.server)
    for workspace in ("wrkspc_a", "wrkspc_b", "wrkspc_a"):
        caller.run(caller.context(workspace_id=workspace), "act")
    assert [method for method, *_ in liar.heard].count("server/discover") == 2


def test_a_listener_hears_that_tools_changed(caller: Caller) -> None:
    heard: list[str] = []
    listening = Caller(replace(caller.server, env={"A_CONNECTION": "of its own"}), heard.append)
    wait_for(lambda: listening.call("grow") and f"assent:{caller.server.name}" in heard)


def test_a_listener_hears_the_url_that_a_client_named(modern: Caller, set_environment: Callable[..., None]) -> None:
    set_environment(ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost")
    heard: list[str] = []
    url = str(modern.server.url)
    wait_for(lambda: Caller(Server(url, url), heard.append).call("grow") and url in heard)


def test_a_flood_of_changes_becomes_a_few_reports(liar: Liar) -> None:
    liar.speak(legacy=True)
    change = b'data: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n\n'
    result = {"content": [{"type": "text", "text": "fine"}]}

    def flood(request: Request) -> None:
        response = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        request.events(*[change] * 1000, f"data: {response}\n\n".encode())

    liar.on_call(flood)
    heard: list[str] = []
    assert text(Caller(liar.server, heard.append).call("act")) == "fine"
    wait_for(lambda: heard)
    connections.close_all()
    assert len(heard) < 20


def test_ending_all_leaves_no_process_and_no_thread(small: Caller) -> None:
    served = pid(small)
    connections.close_all()
    assert not is_alive(served)
    assert "mcp" not in {thread.name for thread in threading.enumerate()}
