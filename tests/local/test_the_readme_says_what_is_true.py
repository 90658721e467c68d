"""The README's commands are run as they stand there, and its promises are names of tests."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from crashes.processes import wait_for
from doors.browser import chromium
from playwright.sync_api import expect

from deploy.folder import free_port

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RUN, APPROVALS = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
(TOOLSET,) = re.findall(r"```py\n(.*?)```", README, re.DOTALL)
(SNIPPET,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The first command, on a port and a folder of its own; what up.json says."""
    tmp_path = tmp_path_factory.mktemp("up")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE", "REDIS", "ANTHROPIC", "ASSENT"))}
    arguments = f"ARGS=--port {free_port()} --data-dir {tmp_path / 'data'}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*RUN.split(), arguments], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    said = tmp_path / "data" / "up.json"
    wait_for("it is up", lambda: process.poll() is not None or said.exists(), 180)
    assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
    found: dict[str, Any] = json.loads(said.read_text())
    yield found
    os.kill(found["pid"], signal.SIGTERM)
    process.wait(30)


def test_two_commands_and_a_snippet_decide_real_approvals(up: dict[str, Any]) -> None:
    """The first approval by the command line, one more by the SDK."""
    env = os.environ | {"ASSENT_URL": up["url"], "ASSENT_API_KEY": up["api_key"]}
    decided = subprocess.run(
        APPROVALS.split(), cwd=ROOT, env=env, input="1\n", capture_output=True, text=True, timeout=60, check=True
    )
    assert "Run shell command: " in decided.stdout
    assert "The session is idle: end_turn." in decided.stdout
    for choice in ("allow once", "deny with a message", "end the run"):
        assert choice in README
        assert choice in decided.stdout
    sdk = subprocess.run([sys.executable, "-c", SNIPPET], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert "wants to run bash" in sdk.stdout
    assert "got stdout:\nswept" in sdk.stdout


def test_its_link_opens_the_inbox_and_what_is_allowed_there_runs(up: dict[str, Any]) -> None:
    """In a browser: the whole way from a question to its tool's result."""
    ask = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}
    with chromium() as browser, Anthropic(base_url=up["url"], api_key=up["api_key"]) as client:
        agent = client.beta.agents.create(name="Janitor", model="claude-opus-5-5", tools=[ask])
        environment = client.beta.environments.list().data[0]
        session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id, title="Sweep")
        said = {"type": "text", "text": 'call bash {"command": "echo $((6 * 7)) brooms"}'}
        client.beta.sessions.events.send(session.id, events=[{"type": "user.message", "content": [said]}])
        page = browser.new_page()
        page.goto(up["inbox_url"])
        page.get_by_role("link", name="brooms").click()
        page.get_by_role("button", name="Allow", exact=True).click()
        expect(page.locator(".told")).to_contain_text("42 brooms")


@pytest.mark.parametrize("path", re.findall(r"`((?:tests|deploy|models|workers)/[\w./]+)`", README))
def test_what_it_names_is_there(path: str) -> None:
    """Every file and folder."""
    assert (ROOT / path).exists()


def test_its_toolset_is_one() -> None:
    """What it shows of the example can be written, and says what the example says."""
    from workers.tools.python import toolset
    from workers.toolsets import orders

    names = {**vars(toolset), "REFUNDS": orders.REFUNDS, "Any": Any, "__name__": "readme"}
    exec(TOOLSET, names)
    shown, real = (each.tools["refund"] for each in (names["orders"], orders.orders))
    for name in ("effect", "idempotent", "policy", "prompt"):
        assert getattr(shown, name) == getattr(real, name)
    assert shown.input_schema["properties"].keys() == real.input_schema["properties"].keys()
