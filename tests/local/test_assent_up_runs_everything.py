"""One command runs everything; what was decided and what waits is there again after kill -9 of all of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from people import Visitor

from api.cli.asking import CALL, settle
from api.cli.client import Inbox, connect
from api.cli.showing import describe
from deploy.folder import MARK, free_port

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]
Until = Callable[..., None]


class Up:
    """One `assent up`, and what it says in up.json."""

    def __init__(self, folder: Path, port: int, until: Until) -> None:
        self.folder = folder
        given = ("DATABASE", "REDIS", "ANTHROPIC", "ASSENT")
        env = {k: v for k, v in os.environ.items() if not k.startswith(given)}
        words = [sys.executable, "-m", "api.cli.main", "up", "--port", str(port), "--data-dir", str(folder)]
        with (folder.parent / "log").open("ab") as log:
            self.process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        # One that was killed left its up.json behind.
        until(lambda: self.process.poll() is not None or self.said.get("pid") == self.process.pid, 120)
        assert self.process.poll() is None, (folder.parent / "log").read_text()[-3000:]

    @property
    def said(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder / "up.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def marked(self) -> list[psutil.Process]:
        """Every process of this folder."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == str(self.folder):
                    found.append(process)
        return found

    def kill_everything(self) -> None:
        """kill -9, the supervisor first, so that it starts nothing again."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        for process in [psutil.Process(self.process.pid), *family]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


@pytest.fixture
def start(tmp_path: Path, until: Until) -> Iterator[Callable[[], Up]]:
    """Starts `assent up` on one data folder and port, again and again."""
    port = free_port()
    started: list[Up] = []

    def run() -> Up:
        started.append(Up(tmp_path / "data", port, until))
        return started[-1]

    yield run
    for up in started:
        if up.process.poll() is None:
            up.kill_everything()


def sample(inbox: Inbox, until: Until) -> dict[str, Any]:
    """The sample session's approval."""
    until(inbox.pending, 60)
    (approval,) = inbox.pending()
    return approval


def test_the_first_approval_waits_is_decided_and_survives_kill_9_of_everything(
    start: Callable[[], Up], until: Until, is_gone: Callable[[int], bool]
) -> None:
    up = start()
    first = up.said
    assert set(first["processes"]) >= {
        "postgres",
        "redis",
        "standin",
        "web",
        "turns",
        "tools",
        "sweeps",
        "deliver",
        "beat",
        "flower",
    }
    assert (up.folder / "up.json").stat().st_mode & 0o777 == 0o600

    with Visitor(first["public_url"]) as browser:
        assert first["sign_in_url"].startswith(f"http://localhost:{httpx.URL(first['url']).port}/sign-in/link/")
        assert browser.submit(first["sign_in_url"], name="Anna").status_code == 303
        assert first["inbox_url"] == f"{first['public_url']}/inbox"
        assert browser.get(first["inbox_url"]).status_code == 200
        assert "admin@localhost, admin in default" in browser.get("/inbox/account").text

    with closing(connect(up.folder).http) as http:
        inbox = Inbox(http)
        approval = sample(inbox, until)
        assert any("ls -la" in line for line in describe(approval))
        decision = CALL["1"][1]
        assert decision
        told = list(settle(inbox, approval, decision))
    assert told[0] == "Decided."
    assert any(line.startswith("result: ") and "exit code: 0" in line for line in told)
    assert told[-1] == "The session is idle: end_turn."

    up.kill_everything()
    again = start()

    assert again.said["api_key"] == first["api_key"]
    assert again.said["sign_in_url"] != first["sign_in_url"]
    assert again.said["database_url"] == first["database_url"]
    with httpx.Client(base_url=first["url"], headers={"x-api-key": first["api_key"]}, trust_env=False) as client:
        assert Inbox(client).pending() == []  # one sample, on an empty folder only
        session = client.get(f"/v1/sessions/{approval['session_id']}").json()
        assert session["status"] == "idle"
        flower = (first["flower_user"], first["flower_password"])
        assert httpx.get(first["flower_url"], auth=flower).status_code == 200
        assert httpx.get(first["flower_url"]).status_code == 401

        web = again.said["processes"]["web"]
        os.kill(web, signal.SIGKILL)
        until(lambda: again.said["processes"]["web"] != web)
        until(lambda: answers(client), 30)

    began = time.monotonic()
    again.process.send_signal(signal.SIGTERM)
    assert again.process.wait(15) == 0
    assert time.monotonic() - began < 15
    assert not (again.folder / "up.json").exists()
    assert again.marked() == []
    assert all(is_gone(pid) for pid in first["processes"].values())


def answers(client: httpx.Client) -> bool:
    """Whether the API is back."""
    try:
        return client.get("/readyz").is_success
    except httpx.HTTPError:
        return False
