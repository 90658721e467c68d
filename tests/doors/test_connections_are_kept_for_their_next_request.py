"""A connection is kept longer than proxies keep it; one that has sent nothing yet is not, and none delays the server's end."""

import socket
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from doors.served import served

from api.door import limits
from api.serving import HEADER_SECONDS, Worker, keepalive
from models.settings import settings


def test_only_a_connection_that_had_a_request_is_kept() -> None:
    worker = Worker.__new__(Worker)
    with limits.connected(None):
        assert worker.timeout_ctx().seconds == HEADER_SECONDS
        limits.request_ended()
        assert worker.timeout_ctx().seconds == settings().keepalive_seconds == keepalive == 75


def test_a_kept_connection_ends_after_its_time_and_with_the_server(database_urls: object, redis_url: str, tmp_path: Path) -> None:
    def kept(url: str) -> socket.socket:
        place = urlsplit(url)
        client = HTTPConnection(place.hostname or "", place.port, timeout=20)
        client.request("GET", "/healthz")
        response = client.getresponse()
        response.read()
        assert (response.status, response.will_close) == (200, False)
        return client.sock

    with served(tmp_path / "short", ASSENT_KEEPALIVE_SECONDS="1") as url, kept(url) as connection:
        assert connection.recv(1) == b""
    with served(tmp_path / "log", graceful=60) as url:
        connection = kept(url)
    # The server has ended within 10 s.
    with connection:
        assert connection.recv(1) == b""
