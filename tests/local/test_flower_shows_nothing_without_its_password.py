"""Flower answers nobody without its password, its metrics and its health check included."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from crashes.processes import wait_for
from honcho.environ import parse_procfile

from deploy.local import ROOT

AUTH = ("operator", "hush")


@pytest.fixture(scope="module")
def flower(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of the Procfile's Flower."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("flower") / "log"
    line = parse_procfile((ROOT / "Procfile").read_text()).processes["flower"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {"PATH": path, "REDIS_URL": redis_url, "FLOWER_BASIC_AUTH": ":".join(AUTH), "FLOWER_PORT": str(port)}
    with log.open("wb") as out, httpx2.Client(base_url=url, timeout=20) as client:
        process = subprocess.Popen(["/bin/sh", "-c", f"exec {line}"], cwd=ROOT, env=env, stdout=out, stderr=out)
        try:
            wait_for("Flower answers", lambda: _answers(client), 60)
            yield client
        finally:
            process.terminate()
            process.wait(20)


def _answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/metrics", auth=AUTH).is_success
    except httpx2.HTTPError:
        return False


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthcheck", "/workers", "/api/workers", "/login", "/nothing"])
def test_every_page_needs_the_password(flower: httpx2.Client, path: str) -> None:
    for auth in (None, ("operator", "wrong")):
        refused = flower.get(path, auth=auth)
        assert refused.status_code == 401, path
        assert refused.text in {"", "Access denied"}, path


def test_with_the_password_metrics_and_health_are_answered(flower: httpx2.Client) -> None:
    assert "flower_" in flower.get("/metrics", auth=AUTH).text
    assert flower.get("/healthcheck", auth=AUTH).text == "OK"
