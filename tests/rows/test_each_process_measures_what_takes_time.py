"""Each process serves the durations of its requests, model calls and tools, its forks' included, if it is told to measure."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from crashes.processes import wait_for
from prometheus_client.parser import text_string_to_metric_families
from rows.stage import Stage, call
from rows.tasks import work

from deploy.folder import free_port
from deploy.procfile import with_own_port
from models.operate.metrics import durations
from models.session.tool_call.row import ToolCall
from models.settings import settings
from workers import tool, turn
from workers.providers import ModelError, ModelReply

Samples = dict[tuple[str | None, ...], float]


def scrape(port: int, name: str) -> Samples:
    """Return the histogram's counts, by the values of their labels."""
    response = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=10, trust_env=False)
    names = durations.DURATIONS[name][1]
    families = text_string_to_metric_families(response.text)
    return {
        tuple(map(each.labels.get, names)): each.value
        for family in families
        for each in family.samples
        if each.name == f"{name}_count"
    }


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port at which this process serves its durations."""
    number = free_port()
    with monkeypatch.context() as patch:
        patch.setattr(durations, "_process", None)
        patch.setenv("ASSENT_METRICS_ADDRESS", f"127.0.0.1:{number}")
        settings.cache_clear()
        durations.begin()
        yield number
    settings.cache_clear()


def run_turn(stage: Stage, session_id: str) -> None:
    """Run the session's current turn, as a worker does."""
    work(turn.run, stage.thread(session_id).turn_id or "", session_id, stage.workspace_id)


def test_a_worker_measures_model_calls_and_tools(
    stage: Stage, port: int, answers: Callable[..., None], tmp_path: Path, setting: Any
) -> None:
    setting("workdir_root", str(tmp_path))
    session_id = stage.session(write="always_allow")
    stage.message(session_id)
    answers(
        ModelError("invalid", "no"),
        ModelReply([call("write", file_path="a", content="b"), call("read", file_path="none")], "tool_use"),
    )
    run_turn(stage, session_id)
    stage.message(session_id)
    run_turn(stage, session_id)
    for each in stage.locked(session_id, lambda locked: locked.db.find(ToolCall)):
        work(tool.run, each.id, session_id, stage.workspace_id)
    calls = scrape(port, durations.MODEL_CALLS)
    assert sorted(calls.items()) == [(("chat", "anthropic", "stand-in", kind), 1) for kind in ("", "invalid")]
    assert scrape(port, durations.TOOLS) == {("write", "done"): 1}


def test_a_server_measures_the_requests_of_its_forks(database_urls: object, redis_url: str, tmp_path: Path) -> None:
    address, number = f"127.0.0.1:{free_port()}", free_port()
    # Not by a fork of the tests' own, in whose main process gevent has replaced threads already.
    command = [sys.executable, "-m", "gunicorn", "api:create_app()", "--config", "python:api.serving", "--bind", address]
    with (tmp_path / "log").open("wb") as log:
        env = os.environ | {"ASSENT_METRICS_ADDRESS": f"127.0.0.1:{number}"}
        server = subprocess.Popen([*command, "--no-control-socket", "--workers", "2"], env=env, stdout=log, stderr=log)
    try:
        wait_for("the server", lambda: answers_at(address), 60)
        for path in ("/v1/agents", "/v1/agents/agent_of_nobody"):
            httpx2.get(f"http://{address}{path}", trust_env=False)
        httpx2.request("BREW", f"http://{address}/v1/agents", trust_env=False)
        expected = {("GET", "/v1/agents", "401"), ("GET", "/v1/agents/<agent_id>", "401"), ("_OTHER", "none", "405")}
        counts = wait_for("all requests", lambda: expected <= {*(counts := scrape(number, durations.REQUESTS))} and counts)
    finally:
        server.terminate()
        server.wait(20)
    assert all(counts[series] == 1 for series in expected)


def answers_at(address: str) -> bool:
    """True if the server answers."""
    try:
        return httpx2.get(f"http://{address}/healthz", trust_env=False).is_success
    except httpx2.HTTPError:
        return False


def test_series_have_a_limit(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "MOST_SERIES", 2)
    for name in ("a", "b", "c", "d", "a"):
        durations.observe(durations.TOOLS, 1, name, "done")
    assert scrape(port, durations.TOOLS) == {("a", "done"): 2, ("b", "done"): 1, ("others", "others"): 2}


def test_nothing_is_loaded_or_measured_without_an_address() -> None:
    program = """
        import sys
        from models.operate.metrics import durations
        durations.begin()
        with durations.measure(durations.TOOLS, "bash", "done"):
            pass
        assert not durations.is_on() and "prometheus_client" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", "\n".join(map(str.strip, program.splitlines())).replace("pass", "    pass")], check=True)


def test_processes_on_one_machine_have_a_port_each() -> None:
    variables = {"ASSENT_METRICS_ADDRESS": "127.0.0.1:9464"}
    assert [with_own_port(variables, number)["ASSENT_METRICS_ADDRESS"] for number in (0, 2)] == ["127.0.0.1:9464", "127.0.0.1:9466"]
    assert with_own_port({"PORT": "1"}, 2) == {"PORT": "1"}


def test_an_address_that_cannot_be_used_ends_the_start(port: int, monkeypatch: pytest.MonkeyPatch, setting: Any) -> None:
    monkeypatch.setattr(durations, "_process", None)
    for address in (f"127.0.0.1:{port}", "here"):
        setting("metrics_address", address)
        with pytest.raises(SystemExit, match="ASSENT_METRICS_ADDRESS"):
            durations.begin()
