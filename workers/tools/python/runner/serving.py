"""Serves one toolset to a worker, over frames of JSON on a socket.

  the worker   {"path", "own_python", "idle_seconds"}    once, before the import of the toolset
               {"call": {...}, "tool", "input", "until"} run a call, unless the worker's lease ends before `until`
               {"cancel": true}                          cancel the call that runs
  the runner   {"ready": {...}} or {"unusable": text}    the toolset's tools, or why the toolset cannot be used
               {"begun": true}                           from here on the outcome may be unknown
               {"log": [level, text]}
               {"returned": {...}}, {"refused": text}, {"lapsed": true} or {"failed": type, "traceback": text}   the end of the call

Standard output and error belong to the functions. The process ends when the worker closes the socket, and after some minutes
without a call. Its keeper kills it when the worker dies.
"""

import contextlib
import json
import logging
import os
import queue
import sys
import threading
import time
import traceback
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from assent import ToolError, Toolset

from .hiding import OthersOnly
from .returned import failure
from .tools import RunnableTool, tools_of

RESULT_BYTES = 32_000_000
_LOG_CHARACTERS = 10_000

Frame = dict[str, Any]


class Unusable(Exception):
    """The toolset cannot be used, with a reason for the operator."""


class WorkerChannel:
    """The socket. Any thread may send; one thread receives."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._connection = Connection(fd)
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def send(self, frame: Frame) -> None:
        """Send a frame. Ends a fork of this process: a function may have forked, and the child returned from the function."""
        if os.getpid() != self._pid:
            os._exit(1)
        with self._lock:
            self._connection.send_bytes(json.dumps(frame).encode())

    def receive(self) -> Frame | None:
        """Return the next frame; None once the worker is gone."""
        try:
            return dict(json.loads(self._connection.recv_bytes()))
        except (EOFError, ConnectionError):
            return None


class Runner:
    """Runs calls in the main thread, one at a time."""

    def __init__(self, channel: WorkerChannel, tools: dict[str, RunnableTool], idle_seconds: float) -> None:
        self._channel = channel
        self._tools = tools
        self._idle_seconds = idle_seconds
        self._orders: queue.Queue[Frame] = queue.Queue()
        self._cancelled = threading.Event()

    def listen(self) -> None:
        """Receive frames until the worker is gone, then end the process."""
        while frame := self._channel.receive():
            if "cancel" in frame:
                self._cancelled.set()
            else:
                self._cancelled = threading.Event()
                self._orders.put(frame)
        os._exit(0)

    def work(self) -> None:
        """Run calls until none has come for a while."""
        with contextlib.suppress(queue.Empty):
            while True:
                order = self._orders.get(timeout=self._idle_seconds)
                cancelled = self._cancelled
                if _now() >= order["until"]:
                    self._channel.send({"lapsed": True})
                    continue
                self._channel.send({"begun": True})
                end = self._run(order, cancelled)
                _flush()
                self._channel.send(end)

    def _run(self, order: Frame, cancelled: threading.Event) -> Frame:
        try:
            result = self._tools[order["tool"]].run(order["call"], order["input"], cancelled)
        except ToolError as error:
            return {"refused": str(error)}
        except BaseException as error:  # noqa: BLE001 - sys.exit() and the like are failures of the function alone
            return {"failed": type(error).__name__, "traceback": traceback.format_exc()[-_LOG_CHARACTERS:]}
        if (size := len(json.dumps(result))) > RESULT_BYTES:
            result = failure(f"it ran to its end, but its return value is too long ({size} bytes)")
        return {"returned": result}


class _ToWorker(logging.Handler):
    """Sends the toolset's log records to the worker's log."""

    def __init__(self, channel: WorkerChannel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._channel.send({"log": [record.levelno, f"{record.name}: {self.format(record)}"[:_LOG_CHARACTERS]]})
        except Exception:  # noqa: BLE001 - a log line is never worth a call
            self.handleError(record)


def load(spec: str) -> Toolset:
    """Import a toolset. Raises Unusable, and those of the module."""
    module, _, attribute = spec.partition(":")
    value: object = import_module(module)
    for name in attribute.split("."):
        value = getattr(value, name, None)
    if not isinstance(value, Toolset):
        raise Unusable(
            f"{attribute} in {module} is not a Toolset but {type(value).__name__}; name the object that Toolset(...) made"
        )
    if not value.tools:
        raise Unusable(f"it declares no tool; put @{attribute}.tool(effect=...) above a function")
    return value


def usable(spec: str) -> tuple[Toolset, dict[str, RunnableTool]]:
    """Return a toolset and its tools. Raises Unusable."""
    try:
        toolset = load(spec)
    except Unusable:
        raise
    except BaseException as error:
        reason = f"cannot be imported ({type(error).__name__}: {error})"
        raise Unusable(reason[:_LOG_CHARACTERS] + _place(error)) from error
    try:
        return toolset, tools_of(toolset)
    except (TypeError, ValueError) as error:
        raise Unusable(str(error)[:_LOG_CHARACTERS]) from error


def main(fd: int, spec: str, home: Path) -> None:
    """Import the toolset and serve its calls."""
    try:
        _serve(WorkerChannel(fd), spec, home)
    finally:
        _flush()
        os._exit(0)  # threads of the toolset do not delay the end


def _serve(channel: WorkerChannel, spec: str, home: Path) -> None:
    start = channel.receive()
    if start is None:
        return
    sys.path[:] = start["path"] + (sys.path if start["own_python"] else [])
    sys.meta_path.insert(0, OthersOnly(home))
    logging.basicConfig(level=logging.INFO, handlers=[_ToWorker(channel)], format="%(message)s")
    sys.argv[1:] = []
    try:
        toolset, tools = usable(spec)
    except Unusable as error:
        channel.send({"unusable": str(error)})
        return
    entries = [tool.entry for tool in tools.values()]
    runner = Runner(channel, tools, start["idle_seconds"])
    threading.Thread(target=runner.listen, daemon=True).start()
    channel.send({"ready": {"name": toolset.name, "description": toolset.description, "tools": entries}})
    runner.work()


def _place(error: BaseException) -> str:
    """Return ` at FILE, line N`, an error's last line outside of Assent and of Python's own importer; empty for none."""
    ours = (str(Path(__file__).parent), "<")
    theirs = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    theirs = [frame for frame in theirs if frame.filename != sys.modules[Toolset.__module__].__file__]
    return f" at {theirs[-1].filename}, line {theirs[-1].lineno}" if theirs else ""


def _now() -> float:
    """Return the seconds by the clock of the worker's leases, `leash.now`."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a function may have closed its own outputs
            stream.flush()
