"""Keeps processes alive, and ends them without orphans. Output is printed by honcho.

honcho's own manager stops everything when one process ends, and notices an end only when the last child of that process has closed
its output. Here each child has a thread that waits for the process itself, kills the rest of its group, and restarts the process.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from honcho.colour import get_colours
from honcho.printer import Message, Printer

from deploy.folder import CannotStart, end

TETHER = Path(__file__).with_name("tether.py")
QUICK_SECONDS = 30
"""After a shorter life of a child, the pause before its restart grows."""
MAX_PAUSE_SECONDS = 30
HOPELESS = 4
"""The start fails if one child ends this often before everything is ready."""


@dataclass(frozen=True)
class Child:
    """A process to keep alive."""

    name: str
    command: str
    """A shell line, run by `exec`, so that the pid is the process's own. Without pipes and `&&`."""
    env: Mapping[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 9
    """Time to end after the signal, before the child is killed."""
    last: bool = False
    """Stopped only after all others have ended."""
    quiet: bool = False
    """The child's output is printed only if the child ends unexpectedly."""
    tether: tuple[str, ...] = field(default=())
    """Additional options for `tether.py`."""


class Stopped(Exception):
    """A signal to stop came during the start."""


class Supervisor:
    """Starts children, prints their output, restarts them, ends them. Calls `on_change` after each start of a child.

    `output`: by default, the standard output.
    """

    def __init__(self, cwd: Path, on_change: Callable[[], None] = lambda: None, output: Any = None) -> None:
        self.cwd = cwd
        self.on_change = on_change
        self.ending = threading.Event()
        self.hurry = threading.Event()
        self.is_ready = False
        self._keepers: dict[str, _Keeper] = {}
        self._printer = Printer(output or sys.stdout, width=len("postgres"))
        self._printing = threading.Lock()
        self._colours = get_colours()

    def listen(self) -> None:
        """Handle SIGINT, SIGTERM and SIGHUP: the first signal begins the end, the second ends at once."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._handle_signal)

    def _handle_signal(self, number: int, frame: object) -> None:  # noqa: ARG002 - the signature of a signal handler
        if self.ending.is_set():
            self.hurry.set()
        self.ending.set()

    def start(self, child: Child) -> None:
        """Start a child and keep it alive."""
        keeper = _Keeper(self, child, next(self._colours))
        self._keepers[child.name] = keeper
        keeper.start()

    @property
    def pids(self) -> dict[str, int]:
        """The running children's own pids, by name."""
        return {name: keeper.pid for name, keeper in self._keepers.items() if keeper.pid is not None}

    def say(self, text: str | bytes, name: str = "assent", colour: str | None = None) -> None:
        """Print a line under a name. A closed output is ignored."""
        with self._printing, contextlib.suppress(OSError, ValueError):
            self._printer.write(Message("line", text, datetime.now(), name, colour))  # noqa: DTZ005 - shown to a person

    def wait_for(self, name: str, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until `ready()`. Raises CannotStart after `seconds` or if a child keeps ending, Stopped after a signal."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self.ending.wait(0.05):
                raise Stopped
            hopeless = [k.child.name for k in self._keepers.values() if k.ends >= HOPELESS]
            if hopeless:
                raise CannotStart(f"{hopeless[0]} keeps ending: see its output above")
            if time.monotonic() > deadline:
                raise CannotStart(f"{name} is not ready after {seconds:.0f} s: see the output above")

    def wait(self) -> None:
        """Wait for a signal to stop."""
        self.ending.wait()

    def stop(self) -> None:
        """End every child and its descendants, children marked `last` after the others. Takes at most 14 s."""
        self.ending.set()
        family = [p for pid in self.pids.values() for p in _descendants(pid)]
        for last in (False, True):
            self._stop([k for k in self._keepers.values() if k.child.last is last])
        end([p for p in family if p.is_running()], signal.SIGKILL, 0.5)

    def _stop(self, keepers: "list[_Keeper]") -> None:
        began = time.monotonic()
        signalled: set[int] = set()
        while any(k.is_alive() for k in keepers):
            waited = time.monotonic() - began
            for keeper in keepers:
                if self.hurry.is_set() or waited > keeper.child.stop_seconds:
                    keeper.signal(signal.SIGKILL)
                # Counted by pid, because a child may have been restarted just before the stop.
                elif keeper.pid is not None and keeper.pid not in signalled:
                    signalled.add(keeper.pid)
                    keeper.signal(keeper.child.stop_signal)
            time.sleep(0.05)


class _Keeper(threading.Thread):
    """One child's thread. It lives as long as the child, since the kernel ends a tethered process with its starting thread."""

    def __init__(self, supervisor: Supervisor, child: Child, colour: str) -> None:
        super().__init__(name=child.name, daemon=True)
        self.supervisor = supervisor
        self.child = child
        self.colour = colour
        self.ends = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._output: deque[bytes] = deque(maxlen=30)
        """A quiet child's last lines."""

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process else None

    def signal(self, number: signal.Signals) -> None:
        process = self._process
        if process:
            process.send_signal(number)

    def run(self) -> None:
        pause = 0.0
        while not self.supervisor.ending.is_set():
            began = time.monotonic()
            code = self._once()
            if self.supervisor.ending.is_set():
                return
            if not self.supervisor.is_ready:
                self.ends += 1
            pause = next_pause(pause, time.monotonic() - began)
            self._report(code, pause)
            self.supervisor.ending.wait(pause)

    def _once(self) -> int:
        """Run the child until it ends. Returns its exit code, negative for a signal."""
        words = [sys.executable, "-I", str(TETHER), "--parent", str(os.getpid()), f"--signal={self.child.stop_signal}"]
        words += [*self.child.tether, "--", "/bin/sh", "-c", f"exec {self.child.command}"]
        self._process = process = subprocess.Popen(  # noqa: S603 - the Procfile's and our own commands
            words,
            env=dict(self.child.env),
            cwd=self.supervisor.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        self.supervisor.on_change()
        code = process.wait()
        self._process = None
        # Remaining processes of the group would keep the port and the output.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return code

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout
        for line in process.stdout:
            if self.child.quiet:
                self._output.append(line)
            else:
                self.supervisor.say(line, self.child.name, self.colour)
        process.stdout.close()

    def _report(self, code: int, pause: float) -> None:
        for line in list(self._output):
            self.supervisor.say(line, self.child.name, self.colour)
        self._output.clear()
        end_reason = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        self.supervisor.say(f"{self.child.name} {end_reason}; starting it again in {pause:g} s")


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def next_pause(pause: float, lived: float) -> float:
    """Return the seconds before the next start of a child that ran for `lived` seconds and last waited for `pause`."""
    if lived > QUICK_SECONDS or not pause:
        return 0.25
    return min(2 * pause, MAX_PAUSE_SECONDS)


def shell(*words: str | Path) -> str:
    """Return the words as a shell line."""
    return shlex.join(str(word) for word in words)
