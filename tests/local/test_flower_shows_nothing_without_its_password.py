"""Flower answers nobody without its password, its metrics and its health check included. With it, Flower shows what runs."""

from pathlib import Path

import httpx2
import pytest
from crashes.processes import WORKER, running, wait_for
from local.flowers import AUTH

from workers.celery import app


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthcheck", "/workers", "/api/workers", "/login", "/nothing"])
def test_every_page_needs_the_password(flower: httpx2.Client, path: str) -> None:
    for auth in (None, ("operator", "wrong")):
        refused = flower.get(path, auth=auth)
        assert refused.status_code == 401, path
        assert refused.text in {"", "Access denied"}, path


def test_the_broker_page_shows_the_real_queues_and_no_other(flower: httpx2.Client) -> None:
    queues = flower.get("/api/queues/length", auth=AUTH).json()["active_queues"]
    assert [queue["name"] for queue in queues] == ["deliver", "sweeps", "tools", "turns"]


def test_the_broker_page_shows_all_queues_also_after_a_look_at_one_worker(
    flower: httpx2.Client, redis_url: str, database_urls: object, tmp_path: Path
) -> None:
    command = [*WORKER, "-P", "threads", "-c", "1", "-Q", "deliver", "--hostname", "deliver@here"]
    with running(command, {"REDIS_URL": redis_url}, tmp_path / "log") as process:
        process.wait_for_output(r"\S+@\S+ ready\.")
        wait_for("Flower asks the worker", lambda: flower.get("/api/workers?refresh=1", auth=AUTH).json().get("deliver@here"))
        queues = flower.get("/api/queues/length", auth=AUTH).json()["active_queues"]
    assert [queue["name"] for queue in queues] == ["deliver", "sweeps", "tools", "turns"]


def test_with_the_password_metrics_and_health_are_answered(flower: httpx2.Client) -> None:
    assert "flower_" in flower.get("/metrics", auth=AUTH).text
    assert flower.get("/healthcheck", auth=AUTH).text == "OK"


def test_the_page_of_tasks_names_tool_agent_session_and_outcome(flower: httpx2.Client, redis_url: str) -> None:
    ids = {"args": "('toolu_1', 'sesn_1', 'wrkspc_1')", "kwargs": "{'tool': 'bash', 'agent': 'agent_1'}"}
    ends = {
        "task-succeeded": {"result": "'bash: done'"},
        "task-failed": {"exception": "Failed('failed: 400 invalid_request_error')"},
        "task-retried": {"exception": "Retry(Retry(...), Failed('tries again: 529'), None)"},
    }
    with app.connection(redis_url) as connection, app.events.Dispatcher(connection, hostname="tools@here") as events:
        for end, fields in ends.items():
            events.send("task-received", uuid=end, name="tool.run", **ids)
            events.send(end, uuid=end, **fields)
    query = {"draw": 1, "start": 0, "length": 100, "order[0][column]": 0, "columns[0][data]": "name", "order[0][dir]": "asc"}

    def rows() -> dict[str, tuple[str, ...]]:
        data = flower.get("/tasks/datatable", params=query, auth=AUTH).json()["data"]
        return {
            row["uuid"]: tuple(row[name] for name in ("state", "kwargs", "args", "result")) for row in data if row["uuid"] in ends
        }

    wait_for("Flower has the tasks", lambda: len([row for row in rows().values() if row[0] != "RECEIVED"]) == len(ends), 60)
    shown = "bash, agent_1", "sesn_1, toolu_1"
    assert rows() == {
        "task-succeeded": ("SUCCESS", *shown, "bash: done"),
        "task-failed": ("FAILURE", *shown, "failed: 400 invalid_request_error"),
        "task-retried": ("RETRY", *shown, "tries again: 529"),
    }
    page = flower.get("/tasks", auth=AUTH).text
    assert all(label in page for label in ("Tool and agent", "Session and row", "Outcome"))
