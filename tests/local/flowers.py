"""The Procfile's Flower as a process."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from crashes.processes import wait_for
from honcho.environ import parse_procfile

from deploy.procfile import ROOT
from workers.celery import app

AUTH = ("operator", "hush")
"""Its name and password."""


@contextmanager
def running_flower(redis_url: str, log: Path) -> Iterator[httpx2.Client]:
    """Run the Procfile's Flower until the block ends. Yields its client."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    line = parse_procfile((ROOT / "Procfile").read_text()).processes["flower"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {"PATH": path, "REDIS_URL": redis_url, "FLOWER_BASIC_AUTH": ":".join(AUTH), "FLOWER_PORT": str(port)}
    with log.open("wb") as out, httpx2.Client(base_url=url, timeout=20) as client:
        process = subprocess.Popen(["/bin/sh", "-c", f"exec {line}"], cwd=ROOT, env=env, stdout=out, stderr=out)
        try:
            wait_for("Flower answers", lambda: _answers(client), 60)
            wait_for("Flower hears events", lambda: _hears(client, redis_url), 60)
            yield client
        finally:
            process.terminate()
            process.wait(20)


def _answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/metrics", auth=AUTH).is_success
    except httpx2.HTTPError:
        return False


def _hears(client: httpx2.Client, redis_url: str) -> bool:
    """Send an event, and return True once Flower shows its worker. Flower answers before it listens to events."""
    with app.connection(redis_url) as connection, app.events.Dispatcher(connection, hostname="probe@here") as events:
        events.send("worker-heartbeat")
    return "probe@here" in client.get("/metrics", auth=AUTH).text
