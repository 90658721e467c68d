"""Open connections that have shown no valid credential are bounded per client address. A valid credential needs no room."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from urllib.parse import urlsplit

import httpx2
import pytest
from doors.served import Caller, good, key, served
from rows.stage import Stage

MOST = 3
CLIENT, PROXY = "127.0.0.1", "127.0.0.2"
"""Two addresses of this machine. The server trusts the second one as a proxy."""


@pytest.fixture(scope="module")
def crowded_api(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that allows few connections, and waits for bodies longer than any test takes."""
    env = {"ASSENT_CONNECTIONS_PER_ADDRESS": str(MOST), "ASSENT_TRUSTED_PROXIES": PROXY}
    with served(tmp_path_factory.mktemp("crowded") / "log", **env) as url:
        yield url


class Slow:
    """Connections that send the head of a form, and never its body."""

    def __init__(self, url: str) -> None:
        self.place = urlsplit(url)
        self.opened = ExitStack()

    def open(self, *headers: str, source: str = CLIENT) -> socket.socket:
        """Open one more."""
        place = (self.place.hostname or "", self.place.port or 0)
        connection = self.opened.enter_context(socket.create_connection(place, timeout=10, source_address=(source, 0)))
        head = ["POST /sign-in/link/x HTTP/1.1", f"host: {self.place.netloc}", "sec-fetch-site: same-origin", "content-length: 100"]
        head += ["content-type: application/x-www-form-urlencoded", *headers]
        connection.sendall("\r\n".join([*head, "", "a"]).encode())
        return connection


@pytest.fixture
def slow(crowded_api: str) -> Iterator[Slow]:
    """Slow connections to the crowded server."""
    connections = Slow(crowded_api)
    with connections.opened:
        yield connections


def status(connection: socket.socket) -> int:
    """Return the status of the response."""
    response = HTTPResponse(connection)
    response.begin()
    return response.status


def test_one_more_connection_than_the_limit_is_a_429(slow: Slow) -> None:
    for _ in range(MOST):
        slow.open()
    assert status(slow.open()) == 429


def test_a_closed_connection_makes_room(slow: Slow, crowded_api: str) -> None:
    for _ in range(MOST):
        slow.open()
    slow.opened.close()
    for _ in range(100):
        try:
            if httpx2.get(f"{crowded_api}/healthz").status_code == 200:
                return
        except httpx2.TransportError:
            continue
    pytest.fail("the closed connections are still counted")


def test_a_connection_with_a_valid_key_is_not_counted(crowded_api: str, stage: Stage) -> None:
    secret = key(stage)
    with ExitStack() as opened:
        callers = [opened.enter_context(Caller(crowded_api, secret)) for _ in range(2 * MOST)]
        session = callers[0].session()
        for caller in callers:
            stream = opened.enter_context(caller.stream("GET", f"/v1/sessions/{session['id']}/events/stream"))
            assert stream.status_code == 200
        good(callers[0].get("/v1/agents"))


def test_behind_a_trusted_proxy_each_client_is_counted_and_the_proxy_is_not(slow: Slow) -> None:
    for number in (1, 2, 3):
        client = (f"x-forwarded-for: 192.0.2.{number}", "x-forwarded-proto: https")
        for _ in range(MOST):
            slow.open(*client, source=PROXY)
        assert status(slow.open(*client, source=PROXY)) == 429


def test_a_proxy_s_connection_counts_for_the_client_of_its_present_request(crowded_api: str) -> None:
    with httpx2.Client(base_url=crowded_api, transport=httpx2.HTTPTransport(local_address=PROXY)) as proxy:
        for number in range(3 * MOST):
            assert proxy.get("/healthz", headers={"x-forwarded-for": f"192.0.2.{number % 2}"}).status_code == 200
