"""The picture of Flower for the documents: `make screenshots` writes it into docs/images."""

import time
from pathlib import Path
from typing import Any

import httpx2
from crashes.processes import wait_for
from doors.browser import chromium
from local.flowers import AUTH

from workers.celery import app

IMAGES = Path(__file__).parents[2] / "docs" / "images"
AGENT, SESSIONS = "agent_01K5SUPPORT", ["sesn_01K5A", "sesn_01K5B", "sesn_01K5C"]
FAILED = "Failed('failed: 400 invalid_request_error')"
LOST = "Failed('lost: its worker died, or was cut off')"
WORK: list[tuple[str, str, str, dict[str, Any]]] = [
    ("sweep.report", "", "succeeded", {"result": "'97 sweeps in 60 s, 2 with something to do, 0 failed'"}),
    ("turn.run", "", "succeeded", {"result": "'asked 1: bash; queued 1: read'"}),
    ("tool.run", "read", "succeeded", {"result": "'read: done'"}),
    ("sweep.expire_approvals", "", "succeeded", {"result": "'expired 3'"}),
    ("turn.run", "", "failed", {"exception": FAILED}),
    ("turn.run", "", "retried", {"exception": "Failed('tries again: 529 overloaded_error')"}),
    ("tool.run", "bash", "failed", {"exception": LOST}),
    ("tool.run", "bash", "started", {}),
    ("turn.run", "", "succeeded", {"result": "'replied: end_turn'"}),
]
"""Tasks with their tools, their ends and the fields of these events."""


def test_picture_of_flower(flower: httpx2.Client, redis_url: str) -> None:
    began = time.time() - 60
    with app.connection(redis_url) as connection:
        for number, (name, tool, end, fields) in enumerate(WORK):
            kind = name.partition(".")[0]
            worker = f"{ {'turn': 'turns', 'tool': 'tools', 'sweep': 'sweeps'}[kind] }@host"
            about = {"tool": tool, "agent": AGENT} if tool else {"agent": AGENT}
            ids = "()" if kind == "sweep" else str((f"{kind}_01K5{number}", SESSIONS[number % 3], "wrkspc_01K5"))
            first = {"name": name, "args": ids, "kwargs": "{}" if kind == "sweep" else str(about)}
            at, runtime = began + number * 5, {"runtime": 0.04 + number / 100} if end == "succeeded" else {}
            with app.events.Dispatcher(connection, hostname=worker) as events:
                events.send("worker-heartbeat", active=0, processed=number)
                events.send("task-received", uuid=f"5f0c6a1e-{number}", timestamp=at, **first)
                events.send(f"task-{end}", uuid=f"5f0c6a1e-{number}", timestamp=at + 1, **fields, **runtime)

    with chromium() as browser:
        credentials = {"username": AUTH[0], "password": AUTH[1]}
        page = browser.new_page(viewport={"width": 1500, "height": 720}, http_credentials=credentials)  # type: ignore[arg-type]
        wait_for("the tasks are there", lambda: "sweep.report" in flower.get("/api/tasks", auth=AUTH).text)
        page.goto(f"{flower.base_url}/tasks")
        page.get_by_text("expired 3").wait_for()
        page.screenshot(path=IMAGES / "flower-desk-light.png")
