"""A server that is told to end says so, and prints no error after its last line."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from crashes.processes import wait_for

COMMAND = [sys.executable, "-m", "gunicorn", "api:create_app()", "--config", "python:api.serving", "--no-control-socket"]


@pytest.mark.usefixtures("database_urls")
def test_the_log_of_a_server_ends_with_its_end(redis_url: str, tmp_path: Path) -> None:
    """A process of its own: a fork of the tests' does not end as Python does. A client keeps its connection for a next request."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    log = tmp_path / "log"

    def is_up() -> bool:
        try:
            return httpx2.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        except httpx2.HTTPError:
            return False

    with log.open("wb") as out:
        server = subprocess.Popen(
            [*COMMAND, "--bind", f"127.0.0.1:{port}"], env=os.environ | {"REDIS_URL": redis_url}, stdout=out, stderr=out
        )
        try:
            wait_for("the server answers", is_up)
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
                assert client.get("/healthz").headers.get("connection") != "close"
                server.send_signal(signal.SIGTERM)
                assert server.wait(20) == 0
        finally:
            server.kill()
    lines = log.read_text("utf-8").splitlines()
    assert not [line for line in lines if "ERROR" in line or "Traceback" in line], lines
    assert "Worker exiting" in lines[-2], lines
    assert "Shutting down" in lines[-1], lines
