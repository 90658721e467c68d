"""All of Assent as production runs it, by the Procfile under its supervisor, behind links that a test can cut."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
from crashes.invariants import Seen, check_invariants, look, version
from crashes.journey import EFFECT, spell, wait_a_beat
from crashes.processes import wait_for
from doors.served import message
from faults.own_redis import OwnRedis
from faults.proxy import Proxy
from honcho.environ import parse_procfile
from rows.stage import Stage
from warm import HOUSE

from deploy.folder import free_port
from deploy.supervisor import Child, Supervisor
from models.session.approval.row import Approval
from models.settings.variables import environment_of

RUNS = ("web", "turns", "tools", "sweeps", "beat")
SCRIPT = f"{EFFECT}\nthen\nsay Done."
POST_SECONDS = 1.0
"""The longest time that a POST may take, whatever the state of Redis."""


class Plant:
    """A supervisor's children, and the links between them and the servers."""

    def __init__(self, folder: Path, env: dict[str, str], redis: OwnRedis, to_redis: Proxy, to_postgres: Proxy) -> None:
        self.folder, self.redis, self.to_redis, self.to_postgres = folder, redis, to_redis, to_postgres
        self.log = folder / "log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {**os.environ, **env, "HOST": "127.0.0.1", "PORT": str(self.port), "LOG_LEVEL": "info", "TOOLS_CONCURRENCY": "2"}
        self.env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.workdirs = Path(env["ASSENT_WORKDIR_ROOT"])

    @contextmanager
    def running(self) -> Iterator["Plant"]:
        """Run all processes until the block ends."""
        with self.log.open("w") as output:
            self.supervisor = Supervisor(HOUSE, output=output)
            processes = parse_procfile((HOUSE / "Procfile").read_text()).processes
            try:
                for name in RUNS:
                    self.supervisor.start(Child(name, processes[name], environment_of(name, self.env)))
                self.ready()
                yield self
            finally:
                self.supervisor.hurry.set()
                self.supervisor.stop()

    def ready(self) -> None:
        """Wait until the API answers and all workers consume."""
        wait_for("the API answers", self._answers, 60)
        for name in ("turns", "tools", "sweeps"):
            wait_for(f"{name} is ready", lambda name=name: re.search(rf"{name}@\S+ ready\.", self.log.read_text()), 60)

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/healthz").status_code == 200
        except httpx2.HTTPError:
            return False

    def process(self, name: str) -> psutil.Process:
        """The child of this name."""
        return psutil.Process(self.supervisor.pids[name])

    def output_since(self, mark: int, pattern: str) -> "re.Match[str] | None":
        """The first match of the pattern in the log after `mark`, a length of the log."""
        return re.search(pattern, self.log.read_text()[mark:])

    @property
    def mark(self) -> int:
        """The length of the log."""
        return len(self.log.read_text())


class Crowd:
    """Sessions of one workspace that go through the same script, driven over HTTP."""

    def __init__(self, plant: Plant, stage: Stage, caller: httpx2.Client) -> None:
        self.plant, self.stage, self.caller = plant, stage, caller
        self.sessions: list[str] = []
        self.slowest = 0.0
        """Seconds of the slowest POST."""

    def begin(self, count: int, script: str = SCRIPT, **policies: Any) -> list[str]:
        """Create sessions, each with a first message. Returns their ids."""
        session_ids = []
        for _ in range(count):
            session_id = self.stage.session(**(policies or {"bash": "always_allow"}))
            self.sessions.append(session_id)
            session_ids.append(session_id)
            self.post(session_id, message(f"Session {session_id}\n{script}"))
        return session_ids

    def post(self, session_id: str, *events: dict[str, Any]) -> None:
        """Post events. The response must be a 200."""
        before = time.monotonic()
        response = self.caller.post(f"/v1/sessions/{session_id}/events", json={"events": list(events)})
        assert response.status_code == 200, response.text
        self.slowest = max(self.slowest, time.monotonic() - before)

    def decide(self, approval: Approval, **decision: Any) -> httpx2.Response:
        """Decide as a person. Returns the response."""
        before = time.monotonic()
        response = self.caller.post(f"/v1/approvals/{approval.id}/decision", json=decision)
        self.slowest = max(self.slowest, time.monotonic() - before)
        return response

    def until(self, condition: Callable[[Seen], Any], seconds: float, sessions: list[str] | None = None) -> list[Seen]:
        """Wait until the condition holds for all sessions. Returns their rows, whose invariants are checked."""
        deadline = time.monotonic() + seconds
        for session_id in sessions or self.sessions:
            while not condition(seen := look(self.stage.workspace_id, session_id)):
                assert time.monotonic() < deadline, f"stuck: {spell(seen)}"
                wait_a_beat(lambda seen=seen: version(self.stage.workspace_id, seen.session.id) != seen.version)
        return [check_invariants(self.stage.workspace_id, session_id) for session_id in sessions or self.sessions]

    def finished(self, seconds: float) -> list[Seen]:
        """Wait until all runs end in time. Returns their rows. Each run has had its effect once."""
        sessions = self.until(lambda seen: seen.session.status == "idle" and seen.turns, seconds)
        for seen in sessions:
            assert seen.session.stop_reason == {"type": "end_turn"}, spell(seen)
            assert self.effects(seen.session.id) == 1
        return sessions

    def questions(self, seconds: float = 20) -> list[Approval]:
        """Wait until each session asks a person. Returns the approvals."""
        return [seen.pending[0] for seen in self.until(lambda seen: seen.pending, seconds)]

    def effects(self, session_id: str) -> int:
        """How often a session's tool took effect, by the tool's own file."""
        file = self.plant.workdirs / session_id / "files" / "effects"
        return file.read_text().count("effect\n") if file.exists() else 0
