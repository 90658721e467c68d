"""The Procfile's Flower as a process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from crashes.processes import running, wait_for
from local.lines import command

from workers.celery import app

AUTH = ("operator", "hush")
"""Its name and password."""


@contextmanager
def running_flower(redis_url: str, log: Path) -> Iterator[httpx2.Client]:
    """Run the Procfile's Flower until the block ends. Yields its client."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    env = {"REDIS_URL": redis_url, "FLOWER_BASIC_AUTH": ":".join(AUTH)}
    with running(command("flower", FLOWER_PORT=str(port)), env, log), httpx2.Client(base_url=url, timeout=20) as client:
        wait_for("Flower answers", lambda: _answers(client), 60)
        wait_for("Flower hears events", lambda: _hears(client, redis_url), 60)
        yield client


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
