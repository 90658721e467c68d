"""A client that leaves its stream is noticed at once, although nothing is written. Its stream then counts for nobody."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from anthropic import Anthropic, RateLimitError
from crashes.processes import wait_for
from doors.served import Caller, key, served
from people import member
from rows.stage import Stage, say

SECONDS = 10
"""In this time the server notices that a client has left. It writes nothing meanwhile."""


@pytest.fixture(scope="module")
def silent_api(database_urls: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an API server that allows one open stream, and writes no comments into it."""
    env = {"ASSENT_STREAMS_PER_KEY": "1", "ASSENT_STREAM_COMMENT_SECONDS": "3600"}
    with served(tmp_path_factory.mktemp("silent") / "log", **env) as url:
        yield url


@pytest.fixture
def caller(silent_api: str, stage: Stage) -> Iterator[Caller]:
    """A client of the stage's workspace, with every scope."""
    with Caller(silent_api, key(stage)) as client:
        yield client


@pytest.fixture
def session_id(caller: Caller) -> str:
    """The id of a session."""
    return str(caller.session()["id"])


def opens(client: httpx2.Client, path: str) -> bool:
    """Return True if the server opens a stream at this path, False if the client has one already. Then leaves."""
    with client.stream("GET", path) as response:
        assert response.status_code in {200, 429}
        return response.status_code == 200


def test_a_client_of_the_sdk_that_breaks_out_of_its_stream_can_open_the_next(
    caller: Caller, silent_api: str, stage: Stage, session_id: str
) -> None:
    """Nothing happens in the session after the client has left."""
    client = Anthropic(base_url=silent_api, api_key=caller.headers["x-api-key"], max_retries=0)
    with client, client.beta.sessions.events.stream(session_id) as events:
        with pytest.raises(RateLimitError, match="1 open streams"):
            client.beta.sessions.events.stream(session_id)
        caller.say(session_id)
        stage.reply(session_id, say("Done."))
        for event in events:
            if event.type == "session.status_idle":
                break
    wait_for("a free stream", lambda: opens(caller, f"/v1/sessions/{session_id}/events/stream"), SECONDS)


def test_a_page_that_is_left_is_noticed(silent_api: str, stage: Stage) -> None:
    with member(stage).client(silent_api) as browser:
        for _ in range(2):
            wait_for("a free stream", lambda: opens(browser, "/inbox/stream"), SECONDS)


def test_a_client_that_sends_its_next_request_early_keeps_its_stream(caller: Caller, stage: Stage, session_id: str) -> None:
    """HTTP allows a client to send the next request before the response to the first one has ended."""
    server = urlsplit(str(caller.base_url))
    path = f"/v1/sessions/{session_id}/events/stream"
    headers = f"host: {server.netloc}\r\nx-api-key: {caller.headers['x-api-key']}\r\n\r\n"
    with socket.create_connection((server.hostname, server.port), timeout=SECONDS) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\n{headers}".encode())
        text = connection.recv(65536)
        connection.sendall(f"GET /v1/sessions/{session_id} HTTP/1.1\r\n{headers}".encode())
        caller.say(session_id)
        stage.reply(session_id, say("Done."))
        caller.post(f"/v1/sessions/{session_id}/archive", json={})
        while b'"type":"session"' not in text:
            piece = connection.recv(65536)
            assert piece, text
            text += piece
    assert text.index(b"event: session.status_terminated") < text.rindex(b"HTTP/1.1 200")
