"""A call that was not sent began nothing, and the result says so. A call that was sent and got no response has no known outcome."""

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from mcp_servers.conftest import SMALL, Background, Caller, is_alive, serve, text, wait_for
from mcp_servers.lying import Answer, Liar, Request

from workers.tools.kinds import ToolResult
from workers.tools.mcp.servers import Server
from workers.tools.output import OutcomeUnknown

Set = Callable[..., None]


def test_the_tool_s_result_is_returned(caller: Caller) -> None:
    result = caller.call("add", a=1, b=2)
    assert (text(result), result.is_error, result.structured) == ("3", False, {"result": 3})


def test_a_call_carries_its_key_and_its_attempt(caller: Caller, tmp_path: Path) -> None:
    caller.run(caller.context(call_id="toolu_7", attempt=3), "note", file=str(tmp_path / "notes"))
    assert json.loads((tmp_path / "notes").read_text()) == {"assent/call_id": "toolu_7", "assent/attempt": 3}


def test_a_tool_that_fails_is_an_error_for_the_model(caller: Caller) -> None:
    result = caller.call("refuse")
    assert result.is_error
    assert "no such luck" in text(result)


def test_a_tool_that_is_not_there_is_an_error_for_the_model(caller: Caller) -> None:
    assert caller.call("nonsense").is_error


def test_a_server_that_dies_with_a_call_leaves_its_outcome_unknown_and_is_not_called_again(tmp_path: Path) -> None:
    process, url = serve(tmp_path)
    with pytest.raises(OutcomeUnknown):
        Caller(Server("dying", url, ours=True)).call("die", note=str(tmp_path / "effects"))
    process.wait()
    assert (tmp_path / "effects").read_text() == "effect\n"


def test_a_command_that_dies_with_a_call_leaves_its_outcome_unknown_and_is_started_for_the_next(
    small: Caller, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    with pytest.raises(OutcomeUnknown):
        small.call("die", file=str(effects))
    assert effects.read_text() == "effect\n"
    assert small.call("pid").content


def test_a_command_that_closes_its_input_does_not_answer_any_more(small: Caller, tmp_path: Path) -> None:
    pid = small.call("pid").content
    assert isinstance(Background(small, "deaf", seconds=0.3, file=str(tmp_path / "deaf")).end(), OutcomeUnknown)
    assert (tmp_path / "deaf").exists()
    assert small.call("pid").content != pid


def test_a_port_where_nobody_listens_has_begun_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    result = Caller(Server("nobody", f"http://127.0.0.1:{port}/mcp", ours=True)).call("act")
    assert result.is_error
    assert text(result) == "nobody cannot be reached: the connection was refused; the call was not sent"


def test_a_command_that_is_not_there_has_begun_nothing() -> None:
    result = Caller(Server("missing", command="/no/such/program", ours=True)).call("act")
    assert result.is_error
    assert "could not be started" in text(result)


def test_a_host_that_does_not_exist_has_begun_nothing() -> None:
    result = Caller(Server("nowhere", "https://nowhere.invalid/mcp", ours=True)).call("act")
    assert "does not resolve" in text(result)


RESUMABLE = b"id: 7\nretry: 1\ndata: \n\n"
PING = b'data: {"jsonrpc": "2.0", "id": "ping", "method": "ping"}\n\n'
GATEWAY = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Request timed out"}}'
LOST: dict[str, Answer] = {
    "hangs up": Request.hang_up,
    "ends its stream of events": lambda request: request.events(),
    "ends its stream, and refuses to resume it": lambda request: request.events(RESUMABLE),
    "ends its stream after a question to us": lambda request: request.events(PING),
    "cuts an event": lambda request: request.events(b'event: message\ndata: {"jsonrpc": "2.0", "id"'),
    "cuts its answer": lambda request: request.plain(200, b'{"jsonrpc"', content_type="application/json", content_length="500"),
    **{f"says {status}": partial(Request.plain, status=status) for status in (302, 303, 408, 409, 425, 499, 500, 503, 504)},
    "says 504 in the protocol's words, but of no request": lambda request: request.plain(
        504, GATEWAY, content_type="application/json"
    ),
    "says 502 in JSON": lambda request: request.plain(502, b'{"message": "bad gateway"}', content_type="application/json"),
    "says 202": Request.accept,
    "says something else": lambda request: request.plain(200, b"<html>", content_type="text/html"),
}


@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("speaks", ["modern", "legacy"])
def test_an_answer_that_is_lost_leaves_the_outcome_unknown(liar: Liar, how: str, speaks: str) -> None:
    liar.speak(legacy=speaks == "legacy")
    liar.on_call(LOST[how])
    with pytest.raises(OutcomeUnknown):
        Caller(liar.server).call("act")
    assert len(liar.calls) == 1


@pytest.mark.parametrize("speaks", ["modern", "legacy"])
def test_an_answer_that_comes_by_a_resumed_stream_is_the_result(liar: Liar, speaks: str) -> None:
    liar.speak(legacy=speaks == "legacy")
    liar.on_call(lambda request: request.events(RESUMABLE))
    answer = (
        b'data: {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [{"type": "text", "text": "late"}]}}'
    )
    resumed = {"7": lambda request: request.events(answer + b"\n\n")}
    liar.answers["GET"] = lambda request: resumed.get(request.headers["last-event-id"], Request.accept)(request)
    assert text(Caller(liar.server).call("act")) == "late"
    assert len(liar.calls) == 1


REFUSED: dict[str, tuple[Answer, str]] = {
    "401": (lambda request: request.plain(401), "refused the call (HTTP 401)"),
    "403": (lambda request: request.error(-32000, "no", 403), "refused the call (HTTP 403)"),
    **{str(status): (partial(Request.plain, status=status), f"(HTTP {status})") for status in (307, 400, 405, 413, 415, 429)},
    "an error": (lambda request: request.error(-32602, "no such thing"), "no such thing"),
    "an error with the code of a lost connection": (lambda request: request.error(-32000, "odd"), "odd"),
    "an error by 500": (lambda request: request.error(-32603, "broke", 500), "broke"),
    "an error as an event": (
        lambda request: request.events(b'data: {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "odd"}}\n\n'),
        "odd",
    ),
    "a malformed result": (lambda request: request.result({"content": 5}), "does not follow the protocol"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_a_server_s_own_error_ends_the_call(liar: Liar, how: str) -> None:
    answer, words = REFUSED[how]
    liar.on_call(answer)
    result = Caller(liar.server).call("act")
    assert result.is_error
    assert words in text(result)
    assert len(liar.calls) == 1


def test_a_command_s_own_error_ends_the_call(small: Caller) -> None:
    result = small.call("odd")
    assert (result.is_error, text(result)) == (True, "small: odd")


def test_a_server_that_forgot_the_session_gets_a_new_handshake(liar: Liar) -> None:
    liar.speak(legacy=True)
    liar.on_call(lambda request: request.plain(404) if len(liar.calls) == 2 else request.result({"content": []}))
    assert not Caller(liar.server).call("act").is_error
    assert not Caller(liar.server).call("act").is_error
    assert [method for method, *_ in liar.heard].count("initialize") == 2


def test_a_call_whose_headers_do_not_fit_is_sent_again_once(liar: Liar) -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    liar.answers["tools/list"] = lambda request: request.tools({"name": "act", "inputSchema": schema})

    def fussy(request: Request) -> None:
        if request.headers["mcp-param-region"] == "eu":
            request.result({"content": [{"type": "text", "text": "fits"}]})
        else:
            request.error(-32020, "header mismatch", 400)

    liar.on_call(fussy)
    assert text(Caller(liar.server).call("act", region="eu")) == "fits"
    assert len(liar.calls) == 2


def test_a_second_rejection_of_the_headers_is_the_result(liar: Liar) -> None:
    liar.on_call(lambda request: request.error(-32020, "header mismatch", 400))
    assert "header mismatch" in text(Caller(liar.server).call("act"))
    assert len(liar.calls) == 2


@pytest.mark.parametrize("served", ["modern", "legacy"])
def test_an_answer_that_is_too_long_is_left_out(request: pytest.FixtureRequest, set_environment: Set, served: str) -> None:
    caller: Caller = request.getfixturevalue(served)
    set_environment(ASSENT_MCP_RESPONSE_BYTES=50_000)
    assert not caller.call("long", size=20_000).is_error
    result = caller.call("long", size=60_000)
    assert result.is_error
    assert "longer than 50000 bytes" in text(result)


def test_a_line_that_is_too_long_is_left_out(set_environment: Set) -> None:
    set_environment(ASSENT_MCP_RESPONSE_BYTES=50_000)
    caller = Caller(replace(SMALL, env={"A_PROCESS": "of its own"}))
    assert not caller.call("pid").is_error
    result = caller.call("long")
    assert result.is_error
    assert "longer than 50000 bytes" in text(result)


@pytest.mark.parametrize("served", ["modern", "legacy"])
def test_a_time_limit_leaves_the_outcome_unknown_and_the_server_is_told(
    request: pytest.FixtureRequest, tmp_path: Path, served: str
) -> None:
    caller: Caller = request.getfixturevalue(served)
    caller.call("add", a=1, b=1)  # connected
    started, heard = tmp_path / "started", tmp_path / "heard"
    call = Background(caller, "wait", seconds=0.5, started=str(started), until=str(tmp_path / "never"), cancelled=str(heard))
    outcome = call.end()
    assert isinstance(outcome, OutcomeUnknown)
    assert "took longer than 0.5 s" in str(outcome)
    wait_for(heard.exists)


def test_a_time_limit_ends_a_command(small: Caller, tmp_path: Path) -> None:
    pid = int(text(small.call("pid")))
    assert isinstance(Background(small, "stay", seconds=0.2, file=str(tmp_path / "pid")).end(), OutcomeUnknown)
    wait_for(lambda: not is_alive(pid))
    assert not small.call("pid").is_error


def test_a_call_that_was_given_up_is_not_sent_later(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    liar.speak(legacy=True)
    liar.on_call(lambda request: request.result({"content": []}))
    liar.keeps_connections = False
    caller = Caller(liar.server)
    caller.call("act")
    go_on, real = threading.Event(), socket.getaddrinfo

    def slow(*args: object, **named: object) -> object:
        assert go_on.wait(10)
        return real(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    result = Background(caller, "act", seconds=0.2).end()
    assert isinstance(result, ToolResult)
    assert text(result) == "liar: the call took longer than 0.2 s before it was sent; nothing began"
    go_on.set()
    assert not caller.call("act").is_error
    assert len(liar.calls) == 2
