"""A toolset's process as the worker sees it: the listing of its tools, and one call after the other."""

import contextlib
import fcntl
import json
import logging
import os
import re
import socket
import struct
import time
import weakref
from multiprocessing.connection import Connection
from typing import Any

from workers import leash
from workers.tools.kinds import ToolContext
from workers.tools.output import OutcomeUnknown, OutputSoFar
from workers.tools.python import discovery
from workers.tools.python.discovery import ToolsetPlace
from workers.tools.python.runner import start

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

_OF_OUR_PYTHON = frozenset({"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"})
"""Variables that name the packages of the worker's interpreter."""
_ENDS = frozenset({"returned", "refused", "lapsed", "failed"})
_LOOK_SECONDS = 0.05
_FRAME_TIMEOUT = struct.pack("ll", 10, 0)
"""How long the rest of a frame may take, as the kernel's `struct timeval`."""
_living: "weakref.WeakSet[ToolsetProcess]" = weakref.WeakSet()

Frame = dict[str, Any]


class UnusableToolset(Exception):
    """The toolset cannot be used, with a reason for the operator. The process is ended."""


class NotBegun(Exception):
    """The call never began: nothing happened. The process is ended."""


class ToolsetProcess:
    """One process of a toolset."""

    def __init__(self, place: ToolsetPlace) -> None:
        """Start the process; `hello` waits until it is ready. Raises UnusableToolset."""
        self.place = place
        self.tools: dict[str, Frame] = {}
        """The entries of the toolset's tools, by name, after `hello`."""
        self._start_time = time.monotonic()
        ours, theirs = socket.socketpair()
        for way in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, way, _FRAME_TIMEOUT)
        self._frames = Connection(ours.detach())
        # The keeper hands on descriptors of its own below this number.
        fd = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, leash.DIRECTORY_FD + 1)
        theirs.close()
        try:
            variables = {name: value for name, value in os.environ.items() if not SECRETS.fullmatch(name)}
            if place.python:
                variables = {name: value for name, value in variables.items() if name not in _OF_OUR_PYTHON}
            argv = [place.interpreter, "-u", "-P", start.__file__, str(fd), place.spec]
            self._leash = leash.Leash(leash.Command(argv, variables, discovery.folder(), {"RLIMIT_CORE": 0}, fds=(fd,)))
        except OSError as error:
            self._frames.close()
            raise UnusableToolset(f"its process could not be started ({error.strerror})") from error
        finally:
            os.close(fd)
        _living.add(self)
        self._send({"path": place.module_path, "own_python": bool(place.python), "idle_seconds": IDLE_SECONDS})

    def hello(self, context: ToolContext | None = None) -> Frame:
        """Return the toolset: `{"name", "description", "tools"}`. Raises UnusableToolset, and NotBegun if `context` is
        cancelled."""
        try:
            return self._hello(context)
        except BaseException:
            self.close()
            raise

    def _hello(self, context: ToolContext | None) -> Frame:
        printed = OutputSoFar(1000)  # a module may print at its import: that belongs to no call
        while True:
            frame = self._receive(_LOOK_SECONDS, printed) or {}
            if ready := frame.get("ready"):
                self.tools = {entry["name"]: entry for entry in ready["tools"]}
                return dict(ready)
            if reason := frame.get("unusable"):
                raise UnusableToolset(str(reason))
            self._log(frame, None)
            if self._leash.over and not frame:
                last_line = printed.texts().get("stderr", "").strip().rpartition("\n")[2]
                raise UnusableToolset(f"its import ended the process ({self._how()}) {last_line}".strip())
            if context and context.cancelled.is_set():
                raise NotBegun
            if time.monotonic() > self._start_time + START_SECONDS:
                raise UnusableToolset(f"its import took longer than {START_SECONDS:g} s")

    def call(self, tool: str, fields: dict[str, Any], context: ToolContext) -> Frame:
        """Run one call; the frame of its end. Raises OutcomeUnknown and NotBegun, after which the process is ended."""
        try:
            return self._call(tool, fields, context)
        except (OutcomeUnknown, NotBegun):
            self.close()
            raise
        except BaseException as error:  # probably from a signal's handler; only `close` ends the function
            self.close()
            if isinstance(error, Exception):
                raise OutcomeUnknown(f"the worker was interrupted ({type(error).__name__})") from error
            raise

    def _call(self, tool: str, fields: dict[str, Any], context: ToolContext) -> Frame:
        self._leash.listen(0, None)  # drops output printed since the last call
        deadline, has_begun, cancelled = time.monotonic() + context.seconds, False, False
        if leash.lapsed():
            raise NotBegun(leash.LAPSED)
        self._send({"call": _call_of(context), "tool": tool, "input": fields, "until": leash.until()})
        while True:
            seconds = max(deadline - time.monotonic(), 0)
            if not seconds and not self._leash.over:
                self._leash.kill(context.output.add)
            elif context.cancelled.is_set() and not cancelled:
                cancelled, deadline = True, min(deadline, time.monotonic() + CANCEL_SECONDS)
                self._send({"cancel": True})
            if frame := self._receive(min(_LOOK_SECONDS, seconds), context.output):
                has_begun = has_begun or "begun" in frame
                if _ENDS & frame.keys():
                    self._leash.listen(0, context.output.add)  # the function printed all its output before this frame
                    return frame
                self._log(frame, context)
            elif self._leash.over:
                if has_begun:
                    raise OutcomeUnknown(f"its process ended before the call did ({self._how()})")
                self._require_end()  # a living process may still begin the call
                raise NotBegun

    @property
    def usable(self) -> bool:
        """True if the process lives, as far as the worker knows."""
        self._leash.listen(0, None)
        return not self._leash.over

    def close(self) -> None:
        """End the process."""
        _living.discard(self)
        self._frames.close()
        self._leash.close()

    def forget(self) -> None:
        """Leave the process to the worker that started it, in a fork."""
        _living.discard(self)
        self._frames.close()
        self._leash.forget()

    def _receive(self, seconds: float, output: OutputSoFar | None) -> Frame | None:
        """Return the next frame, if one comes within `seconds`. Reads output meanwhile, and notices the end of the process."""
        self._leash.listen(seconds, output.add if output else None, *([] if self._frames.closed else [self._frames]))
        try:
            if self._frames.closed or not self._frames.poll():
                return None
            return dict(json.loads(self._frames.recv_bytes(FRAME_BYTES)))
        except (EOFError, ConnectionError):  # the process has ended, or a function closed all its descriptors
            self._frames.close()
        except (OSError, TypeError, ValueError):
            log.error("toolset %s: its process breaks the protocol and is ended", self.place)
            self._frames.close()
            self._leash.kill(output.add if output else None)
        return None

    def _send(self, frame: Frame) -> None:
        with contextlib.suppress(OSError):  # the process is gone or reads nothing: `_receive` or a deadline ends the wait
            self._frames.send_bytes(json.dumps(frame).encode())

    def _require_end(self) -> None:
        """Raises OutcomeUnknown if the process may be alive."""
        try:
            self._leash.end()
        except leash.MayBeAlive as error:
            raise OutcomeUnknown(str(error)) from error
        except leash.NotStarted:
            return

    def _how(self) -> str:
        """Return how the process ended, in words."""
        try:
            end = self._leash.end()
        except (leash.NotStarted, leash.MayBeAlive) as error:
            return str(error)
        if end.how == "lapsed":
            return "killed, as its worker did not renew its lease in time"
        if end.how == "cancelled":
            return "killed by the worker"
        return f"signal {-end.code}" if end.code < 0 else f"exit code {end.code}"

    def _log(self, frame: Frame, context: ToolContext | None) -> None:
        if "log" in frame:
            level, text = frame["log"]
            log.log(int(level), "%s%s", text, f" [{context.call_id}]" if context else "")


def _call_of(context: ToolContext) -> Frame:
    """Return the fields of a function's `Context`."""
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
