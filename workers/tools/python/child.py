"""A toolset's process as the worker sees it: the listing of its tools, and one call after the other."""

import contextlib
import fcntl
import json
import logging
import os
import re
import selectors
import socket
import sys
import time
import weakref
from collections import deque
from pathlib import Path
from typing import Any

from workers.tools.errors import LAPSED, OutcomeUnknown
from workers.tools.kinds import ToolContext
from workers.tools.output import OutputSoFar
from workers.tools.python import discovery
from workers.tools.python.discovery import Place
from workers.tools.python.runner import start
from workers.tools.sandbox import keeper, lease_clock
from workers.tools.sandbox.program import Program

log = logging.getLogger(__name__)

START_SECONDS = 60.0
"""How long the import of a toolset may take."""
IDLE_SECONDS = 600.0
"""How long a toolset's process waits for its next call before it ends."""
CANCEL_SECONDS = 5.0
"""How long a cancelled function may take to end."""
FRAME_BYTES = 64_000_000
"""Length of the longest frame."""
SECRETS = re.compile(
    r"DATABASE_(\w+_)?URL|REDIS_URL|ANTHROPIC_(API_KEY|AUTH_TOKEN)|FLOWER_\w+|ASSENT_\w*(KEY|TOKEN|SECRET)\w*", re.IGNORECASE
)
"""Assent's own variables, which no toolset gets. A toolset gets all other variables: a team's functions need their own secrets."""

_ENDS = frozenset({"returned", "refused", "lapsed", "failed"})
_LOOK_SECONDS = 0.05
_SEND_SECONDS = 10.0
_READ_BYTES = 1 << 16
_living: "weakref.WeakSet[Child]" = weakref.WeakSet()

Frame = dict[str, Any]


class Unusable(Exception):
    """The toolset cannot be used, with a reason for the operator. The process is ended."""


class NotBegun(Exception):
    """The call never began: nothing happened. The process is ended."""


class Child:
    """One process of a toolset."""

    def __init__(self, place: Place) -> None:
        """Start the process; `hello` waits until it is ready. Errors: Unusable."""
        self.place = place
        self.tools: dict[str, Frame] = {}
        """The entries of the toolset's tools, by name, after `hello`."""
        self._started = time.monotonic()
        self._frames: deque[Frame] = deque()
        self._line = bytearray()
        self._socket, other_end = socket.socketpair()
        # The keeper hands on descriptors of its own below this number.
        fd = fcntl.fcntl(other_end, fcntl.F_DUPFD_CLOEXEC, keeper.DIRECTORY_FD + 1)
        other_end.close()
        try:
            variables = {name: value for name, value in os.environ.items() if not SECRETS.fullmatch(name)}
            argv = [sys.executable, "-u", "-P", start.__file__, str(fd), place.spec]
            self._program = Program(argv, variables, Path("/"), fd)
        except OSError as error:
            self._socket.close()
            raise Unusable(f"its process could not be started ({error.strerror})") from error
        finally:
            os.close(fd)
        self._sources = self._program.outputs | {"frames": self._socket.fileno()}
        _living.add(self)
        self._send({"path": discovery.path(), "cwd": discovery.folder(), "idle_seconds": IDLE_SECONDS})

    def hello(self, context: ToolContext | None = None) -> Frame:
        """The toolset: `{"name", "description", "tools"}`. Errors: Unusable, and NotBegun if `context` is cancelled."""
        try:
            return self._hello(context)
        except BaseException:
            self.close()
            raise

    def _hello(self, context: ToolContext | None) -> Frame:
        printed = OutputSoFar(1000)  # a module may print at its import: that belongs to no call
        while True:
            self._listen(_LOOK_SECONDS, printed)
            while self._frames:
                frame = self._frames.popleft()
                if ready := frame.get("ready"):
                    self.tools = {entry["name"]: entry for entry in ready["tools"]}
                    return dict(ready)
                if reason := frame.get("unusable"):
                    raise Unusable(str(reason))
                self._log(frame, None)
            if self._program.over:
                last_line = printed.texts().get("stderr", "").strip().rpartition("\n")[2]
                raise Unusable(f"its import ended the process ({self._program.how}) {last_line}".strip())
            if context and context.cancelled.is_set():
                raise NotBegun
            if time.monotonic() > self._started + START_SECONDS:
                raise Unusable(f"its import takes longer than {START_SECONDS:g} s")

    def call(self, tool: str, fields: dict[str, Any], context: ToolContext) -> Frame:
        """Run one call; the frame of its end. Errors: OutcomeUnknown and NotBegun, after which the process is ended."""
        try:
            return self._call(tool, fields, context)
        except (OutcomeUnknown, NotBegun):
            self.close()
            raise
        except BaseException as error:  # a signal's handler, most likely: nothing else would ever end the function
            self.close()
            if isinstance(error, Exception):
                raise OutcomeUnknown(f"the worker was interrupted ({type(error).__name__})") from error
            raise

    def _call(self, tool: str, fields: dict[str, Any], context: ToolContext) -> Frame:
        self._listen(0, None)  # drops output printed since the last call
        deadline, begun, cancelled = time.monotonic() + context.seconds, False, False
        if lease_clock.lapsed():
            raise NotBegun(LAPSED)
        self._send({"call": _call_of(context), "tool": tool, "input": fields, "until": lease_clock.until()})
        while True:
            while self._frames:
                frame = self._frames.popleft()
                begun = begun or "begun" in frame
                if _ENDS & frame.keys():
                    self._listen(0, context.output)  # the function printed all its output before this frame
                    return frame
                self._log(frame, context)
            left = deadline - time.monotonic()
            if self._program.over:
                if begun or self._program.report is None:
                    raise OutcomeUnknown(f"its process ended before it did ({self._program.how})")
                raise NotBegun
            if left <= 0:
                self._program.kill()
                self._read_frames()
            elif context.cancelled.is_set() and not cancelled:
                cancelled, deadline = True, min(deadline, time.monotonic() + CANCEL_SECONDS)
                self._send({"cancel": True})
            else:
                self._listen(min(_LOOK_SECONDS, left), context.output)

    @property
    def usable(self) -> bool:
        """True if the process lives, as far as the worker knows."""
        self._listen(0, None)
        return not self._program.over

    def close(self) -> None:
        """End the process."""
        _living.discard(self)
        self._socket.close()
        self._program.close()

    def forget(self) -> None:
        """In a fork: leave the process to the worker that started it."""
        _living.discard(self)
        self._socket.close()
        self._program.forget()

    def _listen(self, seconds: float, output: OutputSoFar | None) -> None:
        """Wait up to `seconds` for frames, output or the end of the process, and read them."""
        with selectors.DefaultSelector() as selector:
            for name, fd in self._sources.items():
                selector.register(fd, selectors.EVENT_READ, name)
            ready = {str(key.data) for key, _ in selector.select(seconds)}
        for stream in ready & {"stdout", "stderr"}:
            self._read_output(stream, output)
        if "report" in ready:
            self._program.look()
        if "frames" in ready or self._program.over:
            self._read_frames()

    def _read_output(self, stream: str, output: OutputSoFar | None) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._sources[stream], _READ_BYTES)
            if not data:
                del self._sources[stream]  # closed by a function: always readable, always empty
            elif output:
                output.add(stream, data)

    def _read_frames(self) -> None:
        try:
            while data := self._socket.recv(_READ_BYTES):
                *complete, rest = data.split(b"\n")
                for line in complete:
                    self._frames.append(dict(json.loads(self._line + line)))
                    self._line.clear()
                self._line += rest
                if len(self._line) > FRAME_BYTES or (self._line and not self._line.startswith(b"{")):
                    raise ValueError("no frame")
        except (BlockingIOError, ConnectionError):
            return
        except (TypeError, ValueError):
            log.error("toolset %s: its process breaks the protocol and is ended", self.place)
            self._program.kill()

    def _send(self, frame: Frame) -> None:
        self._socket.settimeout(_SEND_SECONDS)
        with contextlib.suppress(OSError):  # the worker notices otherwise that the process is gone or reads nothing
            self._socket.sendall(json.dumps(frame).encode("ascii") + b"\n")
        self._socket.setblocking(False)

    def _log(self, frame: Frame, context: ToolContext | None) -> None:
        if "log" in frame:
            level, text = frame["log"]
            log.log(int(level), "%s%s", text, f" [{context.call_id}]" if context else "")


def _call_of(context: ToolContext) -> Frame:
    """The fields of a function's `Context`."""
    return {
        "call_id": context.call_id,
        "session_id": context.session_id,
        "workspace_id": context.workspace_id,
        "principal": context.principal,
        "attempt": context.attempt,
        "folder": str(context.workdir),
    }


def _forget_all() -> None:
    for child in list(_living):
        child.forget()


os.register_at_fork(after_in_child=_forget_all)
