"""The client of a benchmark, one closed loop: starts cycles, decides parked ones, and reads the workers' marks."""

import json
import os
import random
import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from typing import Any

from benchmarks.house import House

PROMPT = 'call glob {"pattern": "*.none"}\nthen\nsay done'
PATIENCE_SECONDS = 120
"""A benchmark fails after this time without a mark."""

Mark = tuple[str, str, str, int]
"""Kind, session, call, nanoseconds: see `benchmarks.marks`."""


class Loop:
    """Cycles of any system that writes the mark `P` when a cycle parks and `D` when it is done."""

    def __init__(self, at: House) -> None:
        self.pool = ThreadPoolExecutor(4)
        self.marks = os.open(at.pipe, os.O_RDWR | os.O_NONBLOCK)
        self.rest = b""
        self.heard = time.monotonic()
        self.failed: list[BaseException] = []

    def start(self) -> str:
        """Begin a cycle. Returns its id."""
        raise NotImplementedError

    def allow(self, session_id: str, call_id: str) -> None:
        """Let a parked cycle go on."""
        raise NotImplementedError

    def submit(self, work: Callable[..., object], *args: str) -> None:
        """Run `work` in a thread. The next `read` raises its error."""
        self.pool.submit(work, *args).add_done_callback(self._done)

    def _done(self, future: Future[object]) -> None:
        if error := future.exception():
            self.failed.append(error)

    def read(self, seconds: float = 1) -> list[Mark]:
        """Return the marks that arrive within `seconds`."""
        if self.failed:
            raise self.failed[0]
        if not select.select([self.marks], [], [], seconds)[0]:
            assert time.monotonic() < self.heard + PATIENCE_SECONDS, f"no mark for {PATIENCE_SECONDS} s"
            return []
        self.heard = time.monotonic()
        *lines, self.rest = (self.rest + os.read(self.marks, 1 << 16)).split(b"\n")
        return [(kind, session, call, int(at)) for kind, session, call, at in (line.decode().split() for line in lines)]

    def cycles(self, count: int, in_flight: int) -> None:
        """Run `count` whole cycles, `in_flight` at a time."""
        self.heard = time.monotonic()
        for _ in range(min(count, in_flight)):
            self.submit(self.start)
        started, done = min(count, in_flight), 0
        while done < count:
            for kind, session_id, call_id, _ in self.read():
                if kind == "P":
                    self.submit(self.allow, session_id, call_id)
                elif kind == "D":
                    done += 1
                    if started < count:
                        started += 1
                        self.submit(self.start)

    def park(self, count: int) -> dict[str, str]:
        """Start `count` cycles and leave them parked. Returns the waiting call of each, by the cycle's id."""
        self.heard = time.monotonic()
        parked: dict[str, str] = {}
        for _ in range(count):
            self.submit(self.start)
        while len(parked) < count:
            parked |= {session: call for kind, session, call, _ in self.read() if kind == "P"}
        return parked

    def latency(self, rate: int, seconds: int) -> list[float]:
        """Park cycles, then allow `rate` per second. Returns the milliseconds from each decision to the tool's claim."""
        parked = self.park(rate * seconds)
        sent: dict[str, int] = {}
        marks: list[Mark] = []
        pace = random.Random(3)
        due = time.monotonic()
        for session_id, call_id in parked.items():
            while (wait := due - time.monotonic()) > 0:
                marks += self.read(wait)
            sent[session_id] = time.monotonic_ns()
            self.submit(self.allow, session_id, call_id)
            due += pace.uniform(0.75, 1.25) / rate
        while sum(kind == "D" for kind, *_ in marks) < len(parked):
            marks += self.read()
        return [(at - sent[session]) / 1e6 for kind, session, _, at in marks if kind == "T"]

    def close(self) -> None:
        """Read no more marks."""
        self.pool.shutdown()
        os.close(self.marks)


class Driver(Loop):
    """Cycles of Assent, over kept-alive connections: message, approval, tool, end."""

    def __init__(self, at: House) -> None:
        super().__init__(at)
        self.at = at
        self.of_thread = threading.local()
        # One tool, as in the peers' drivers.
        tool = {"name": "glob", "enabled": True, "permission_policy": {"type": "always_ask"}}
        toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": False}, "configs": [tool]}
        agent = self._post("/v1/agents", {"name": "Bench", "model": "claude-bench", "tools": [toolset]})
        environment = self._request("GET", "/v1/environments")["data"][0]
        self.session = {"agent": agent["id"], "environment_id": environment["id"], "initial_events": [message(PROMPT)]}

    def start(self) -> str:
        """Create a session with its first message. Returns its id."""
        session_id: str = self._post("/v1/sessions", self.session)["id"]
        return session_id

    def allow(self, session_id: str, call_id: str) -> None:
        """Send the decision."""
        confirmation = {"type": "user.tool_confirmation", "tool_use_id": call_id, "result": "allow"}
        self._post(f"/v1/sessions/{session_id}/events", {"events": [confirmation]})

    def say(self, session_id: str, text: str) -> None:
        """Send one more message."""
        self._post(f"/v1/sessions/{session_id}/events", {"events": [message(text)]})

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._request("POST", path, json.dumps(body))

    def _request(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        """Return the JSON of a response. Uses the standard library as the peers' drivers do, so that all clients cost the same."""
        headers = {"x-api-key": self.at.key, "content-type": "application/json"}
        try:
            http = self._connection()
            http.request(method, path, body, headers)
            response = http.getresponse()
        except (HTTPException, OSError):  # the server closed the idle connection
            http = self._connection(anew=True)
            http.request(method, path, body, headers)
            response = http.getresponse()
        text = response.read()
        assert response.status < 300, text
        payload: dict[str, Any] = json.loads(text)
        return payload

    def _connection(self, *, anew: bool = False) -> HTTPConnection:
        """Return this thread's connection."""
        if anew or not hasattr(self.of_thread, "http"):
            self.of_thread.http = HTTPConnection(self.at.url.removeprefix("http://"), timeout=30)
            self.of_thread.http.connect()
            self.of_thread.http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection: HTTPConnection = self.of_thread.http
        return connection


def message(text: str) -> dict[str, Any]:
    """Return a user's message."""
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}
