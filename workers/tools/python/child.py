"""A runner as the worker sees it: what its toolset has, and one call after the other."""

import contextlib
import fcntl
import logging
import math
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
from workers.tools.python.discovery import HOME, Place
from workers.tools.python.frames import Frame, Unpacker, packed
from workers.tools.sandbox import keeper, lease_clock
from workers.tools.sandbox.program import Program

log = logging.getLogger(__name__)

START_SECONDS = 60.0
"""How long the import of a toolset may take."""
IDLE_SECONDS = 600.0
"""How long a runner waits for its next call before it ends."""
CANCEL_SECONDS = 5.0
"""How long a function may take to end once it is told that it is cancelled."""
SECRETS = re.compile(
    r"DATABASE_(\w+_)?URL|REDIS_URL|ANTHROPIC_(API_KEY|AUTH_TOKEN)|FLOWER_\w+|ASSENT_\w*(KEY|TOKEN|SECRET)\w*", re.IGNORECASE
)
"""Variables of Assent's own that no toolset gets. It gets all others: a team's functions need their own."""

_ENDS = frozenset({"returned", "says", "failed"})
_LOOK_SECONDS = 0.05
_SAY_SECONDS = 10.0
_READ = 1 << 16
_known: "weakref.WeakSet[Child]" = weakref.WeakSet()


class Unusable(Exception):
    """The toolset cannot be used, and why; in words for the operator. The runner is ended."""


class NotBegun(Exception):
    """The call never began: nothing happened. The runner is ended."""


class Child:
    """One runner."""

    def __init__(self, place: Place) -> None:
        """Start it; `hello` says whether it can be used. Errors: Unusable."""
        self.place = place
        self.tools: dict[str, Frame] = {}
        """What its toolset has, by name, once it has said hello."""
        self._started = time.monotonic()
        self._frames: deque[Frame] = deque()
        self._unpacker = Unpacker()
        self._socket, theirs = socket.socketpair()
        # Its number must be none of those at which a keeper hands on something of its own.
        fd = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, keeper.DIRECTORY_FD + 1)
        theirs.close()
        try:
            argv = [sys.executable, "-u", "-m", "workers.tools.python.runner", str(fd), place.spec]
            self._program = Program(argv, _environment(), HOME, fd)
        except OSError as error:
            self._socket.close()
            raise Unusable(f"its process could not be started ({error.strerror})") from error
        finally:
            os.close(fd)
        self._sources = self._program.outputs | {"frames": self._socket.fileno()}
        _known.add(self)
        cwd = _cwd()
        self._say({"path": [str(Path(cwd, entry)) for entry in sys.path], "cwd": cwd, "idle_seconds": IDLE_SECONDS})

    def hello(self, context: ToolContext | None = None) -> Frame:
        """What the toolset has: `{"name", "description", "tools"}`. Errors: Unusable, and NotBegun if `context` is cancelled."""
        try:
            return self._hello(context)
        except BaseException:
            self.close()
            raise

    def _hello(self, context: ToolContext | None) -> Frame:
        printed = OutputSoFar(1000)  # what a module prints at its import belongs to no call
        while True:
            self._listen(_LOOK_SECONDS, printed)
            while self._frames:
                frame = self._frames.popleft()
                if ready := frame.get("ready"):
                    self.tools = {entry["name"]: entry for entry in ready["tools"]}
                    return dict(ready)
                if words := frame.get("unusable"):
                    raise Unusable(str(words))
                self._note(frame, None)
            if self._program.over:
                said = printed.texts().get("stderr", "").strip().rpartition("\n")[2]
                raise Unusable(f"its import ended the process ({self._program.how}) {said}".strip())
            if context and context.cancelled.is_set():
                raise NotBegun
            if time.monotonic() > self._started + START_SECONDS:
                raise Unusable(f"its import takes longer than {START_SECONDS:g} s")

    def call(self, tool: str, given: dict[str, Any], context: ToolContext) -> Frame:
        """Run one call; the frame of its end. Errors: OutcomeUnknown and NotBegun, after which the runner is ended."""
        try:
            end = self._call(tool, given, context)
            self._program.renew(math.inf)  # until the next call, there is no lease
            return end
        except (OutcomeUnknown, NotBegun):
            self.close()
            raise
        except BaseException as error:  # a signal's handler, most likely: nobody else would ever end what runs
            self.close()
            if isinstance(error, Exception):
                raise OutcomeUnknown(f"the worker was interrupted ({type(error).__name__})") from error
            raise

    def _call(self, tool: str, given: dict[str, Any], context: ToolContext) -> Frame:
        self._listen(0, None)  # what was printed since the last call belongs to none
        limit, begun, told = time.monotonic() + context.seconds, False, False
        self._program.renew()
        if lease_clock.lapsed():
            raise NotBegun(LAPSED)
        self._say({"call": _spelled(context), "tool": tool, "input": given, "until": lease_clock.until()})
        while True:
            self._program.renew()
            while self._frames:
                frame = self._frames.popleft()
                begun = begun or "begun" in frame
                if _ENDS & frame.keys():
                    self._listen(0, context.output)  # it has printed all before this
                    return frame
                self._note(frame, context)
            left = limit - time.monotonic()
            if self._program.over:
                if begun or self._program.report is None:
                    raise OutcomeUnknown(f"its process ended before it did ({self._program.how})")
                raise NotBegun
            if left <= 0:
                self._program.kill()
                self._take_frames()
            elif context.cancelled.is_set() and not told:
                told, limit = True, min(limit, time.monotonic() + CANCEL_SECONDS)
                self._say({"cancel": True})
            else:
                self._listen(min(_LOOK_SECONDS, left), context.output)

    @property
    def usable(self) -> bool:
        """Whether it lives, as far as can be seen."""
        self._listen(0, None)
        return not self._program.over

    def close(self) -> None:
        """End it."""
        _known.discard(self)
        self._socket.close()
        self._program.close()

    def forget(self) -> None:
        """In a fork: leave it to the process that started it."""
        _known.discard(self)
        self._socket.close()
        self._program.forget()

    def _listen(self, seconds: float, output: OutputSoFar | None) -> None:
        """Take in what is there, or comes within these seconds: frames, what is printed, the end."""
        with selectors.DefaultSelector() as selector:
            for name, fd in self._sources.items():
                selector.register(fd, selectors.EVENT_READ, name)
            ready = {str(key.data) for key, _ in selector.select(seconds)}
        for stream in ready & {"stdout", "stderr"}:
            self._take_output(stream, output)
        if "report" in ready:
            self._program.look()
        if "frames" in ready or self._program.over:
            self._take_frames()

    def _take_output(self, stream: str, output: OutputSoFar | None) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._sources[stream], _READ)
            if not data:
                del self._sources[stream]  # closed by a function: for ever ready, and never with anything
            elif output:
                output.add(stream, data)

    def _take_frames(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while data := self._socket.recv(_READ):
                try:
                    self._frames += self._unpacker.feed(data)
                except ValueError:
                    log.error("toolset %s: its process does not keep to the protocol, and is ended", self.place)
                    self._program.kill()
                    return

    def _say(self, frame: Frame) -> None:
        self._socket.settimeout(_SAY_SECONDS)
        with contextlib.suppress(OSError):  # a runner that is gone, or takes nothing, shows in what it does
            self._socket.sendall(packed(frame))
        self._socket.setblocking(False)

    def _note(self, frame: Frame, context: ToolContext | None) -> None:
        if "log" in frame:
            level, text = frame["log"]
            log.log(int(level), "%s%s", text, f" [{context.call_id}]" if context else "")


def _spelled(context: ToolContext) -> Frame:
    """What a call is given, in JSON."""
    return {
        "call_id": context.call_id,
        "session_id": context.session_id,
        "root": str(context.root),
        "seconds": context.seconds,
        "workspace_id": context.workspace_id,
        "principal": context.principal,
        "attempt": context.attempt,
    }


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not SECRETS.fullmatch(name)}


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _forget_all() -> None:
    for child in list(_known):
        child.forget()


os.register_at_fork(after_in_child=_forget_all)
