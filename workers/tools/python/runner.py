"""Runs the functions of one toolset: a program of its own, `python -m workers.tools.python.runner FD MODULE:ATTRIBUTE`.

On the socket FD, in frames:
  the worker   {"path", "cwd", "idle_seconds"}           once, before anything of the toolset is imported
               {"call": {...}, "tool", "input", "until"} run this, if the lease has not run out by then
               {"cancel": true}                          tell the function that runs
  the runner   {"ready": {...}} or {"unusable": words}   what the toolset has, or why it cannot be used
               {"begun": true}                           from here on the outcome may be unknown
               {"log": [level, text]}
               {"returned": {...}}, {"says": words} or {"failed": type, "traceback": text}   the end of the call

Standard output and error belong to the functions. It ends when the worker's end of the socket is closed (and is ended by its
keeper when the worker is gone, whatever it does), and by itself after some minutes without a call.
"""

import logging
import os
import queue
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.tools.errors import LAPSED, ToolError
from workers.tools.kinds import Tool, ToolContext, ToolResult
from workers.tools.output import OutputSoFar
from workers.tools.python.discovery import Refused, load
from workers.tools.python.frames import MOST_BYTES, Frame, Unpacker, packed
from workers.tools.sandbox import lease_clock

_LOG_TEXT = 10_000
_READ = 1 << 16


class Channel:
    """The socket. Any thread may say something; one listens."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._unpacker = Unpacker()
        self._frames: list[Frame] = []

    def say(self, frame: Frame) -> None:
        """Send a frame, if this is the runner: a function may have forked, and its child come back from it."""
        if os.getpid() != self._pid:
            os._exit(1)
        with self._lock:
            self._socket.sendall(packed(frame))

    def hear(self) -> Frame | None:
        """The next frame; None once the worker is gone."""
        while not self._frames:
            data = self._socket.recv(_READ)
            if not data:
                return None
            self._frames += self._unpacker.feed(data)
        return self._frames.pop(0)


class Runner:
    """One toolset, one call at a time, in the main thread."""

    def __init__(self, channel: Channel, tools: dict[str, Tool], idle_seconds: float) -> None:
        self._channel = channel
        self._tools = tools
        self._idle_seconds = idle_seconds
        self._orders: queue.Queue[Frame] = queue.Queue()
        self._cancelled = threading.Event()

    def listen(self) -> None:
        """Take what the worker says, for ever."""
        while frame := self._channel.hear():
            if "cancel" in frame:
                self._cancelled.set()
            else:
                self._cancelled = threading.Event()
                self._orders.put(frame)
        os._exit(0)

    def work(self) -> None:
        """Run calls until none has come for a while."""
        while True:
            try:
                order = self._orders.get(timeout=self._idle_seconds)
            except queue.Empty:
                return
            cancelled = self._cancelled
            if lease_clock.now() >= order["until"]:
                self._channel.say({"says": f"not begun: {LAPSED}"})
                continue
            self._channel.say({"begun": True})
            ended = self._run(order, cancelled)
            for stream in (sys.stdout, sys.stderr):
                _quietly(stream.flush)
            self._channel.say(ended)

    def _run(self, order: Frame, cancelled: threading.Event) -> Frame:
        call = order["call"]
        context = ToolContext(**{**call, "root": Path(call["root"])}, cancelled=cancelled, output=OutputSoFar(0))
        try:
            result = self._tools[order["tool"]].run(context, order["input"])
            return {"returned": _spelled(result)}
        except ToolError as error:
            return {"says": str(error)}
        except BaseException as error:  # noqa: BLE001 - sys.exit() and the like are failures of the function, not our end
            return {"failed": type(error).__name__, "traceback": traceback.format_exc()[-_LOG_TEXT:]}


class _ToWorker(logging.Handler):
    """Log records of the toolset, for the worker's log."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._channel.say({"log": [record.levelno, f"{record.name}: {self.format(record)}"[:_LOG_TEXT]]})
        except Exception:  # noqa: BLE001 - a log line is never worth a call
            self.handleError(record)


def _spelled(result: ToolResult) -> dict[str, Any]:
    found = {"content": result.content, "is_error": result.is_error, "structured": result.structured}
    if (size := len(packed(found))) > MOST_BYTES // 2:
        text = f"it ran to its end, but what it returned is too long ({size} bytes)"
        return {"content": [{"type": "text", "text": text}], "is_error": True, "structured": None}
    return found


def _quietly(act: Callable[[], object]) -> None:
    try:  # noqa: SIM105 - a function may have closed what is its own
        act()
    except (OSError, ValueError):
        pass


def _place(error: BaseException) -> str:
    """The last line of the toolset's own, or of what it imports, that an error came by."""
    ours = str(Path(__file__).parents[1])
    theirs = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((ours, "<"))]
    return f" at {theirs[-1].filename}, line {theirs[-1].lineno}" if theirs else ""


def main() -> None:
    """Import the toolset and serve it."""
    channel = Channel(int(sys.argv[1]))
    told = channel.hear()
    if told is None:
        return
    sys.path[:] = told["path"]
    _quietly(lambda: os.chdir(told["cwd"]))
    logging.basicConfig(level=logging.INFO, handlers=[_ToWorker(channel)], format="%(message)s")
    spec = sys.argv[2]
    sys.argv[1:] = []
    try:
        toolset = load(spec)
    except Refused as refused:
        channel.say({"unusable": str(refused)})
        return
    except BaseException as error:  # noqa: BLE001 - whatever it is, the operator is told
        words = f"cannot be imported ({type(error).__name__}: {error})"
        channel.say({"unusable": words[:_LOG_TEXT] + _place(error), "traceback": traceback.format_exc()[-_LOG_TEXT:]})
        return
    runner = Runner(channel, toolset.tools, told["idle_seconds"])
    threading.Thread(target=runner.listen, daemon=True).start()
    entries = [tool.described for tool in toolset.tools.values()]
    channel.say({"ready": {"name": toolset.name, "description": toolset.description, "tools": entries}})
    runner.work()


if __name__ == "__main__":
    try:
        main()
    finally:
        _quietly(sys.stdout.flush)
        _quietly(sys.stderr.flush)
        os._exit(0)  # threads of the toolset do not hold up the end
