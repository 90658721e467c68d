"""The worker's side of the keeper: have it run a command, or end it, and know how it ended.

`run_kept` runs one to its end; `program` keeps one running.
"""

import contextlib
import marshal
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from workers.tools.errors import LAPSED, OutcomeUnknown, ToolError
from workers.tools.output import OutputSoFar
from workers.tools.sandbox import guarding, keeper, lease_clock
from workers.tools.sandbox.interpreter import compiled, environment, python
from workers.tools.sandbox.keeper import END_SECONDS

_KEEPER = compiled(keeper.__file__)
_LOOK_SECONDS = 0.05
"""How often a cancel is looked for."""
SLACK_SECONDS = 5.0
"""How much later than it must a keeper may report."""
_READ = 1 << 16
_PID_AT = slice(1, 11)


@dataclass(frozen=True)
class Command:
    """What to run. `argv[0]` is an absolute path; the environment is all that it gets."""

    argv: list[str]
    env: dict[str, str]
    cwd: Path
    limits: dict[str, int]
    """By name in the module `resource`; soft and hard."""
    files: dict[int, bytes] = field(default_factory=dict)
    """Text to be read at a descriptor."""
    fds: tuple[int, ...] = ()
    """Descriptors of this process to hand on, at the same numbers."""
    no_new_privileges: bool = True
    grace: float = 0
    """Seconds between SIGTERM and SIGKILL at the time limit and when cancelled; 0: SIGKILL at once."""
    tell_itself: bool = True
    """Whether `argv` itself gets the SIGTERM, or only what it has started."""
    walls: "Walls | None" = None


@dataclass(frozen=True)
class Walls:
    """What a command may use in all, its processes together. It is ended soon after it runs into one."""

    folder: str
    bytes: int
    """Of the folder, on disk."""
    files: int
    """In the folder, directories among them."""
    free: int
    """Bytes that must stay free on the folder's disk."""
    processes: int
    """And threads."""
    memory: int
    """Bytes, what is shared counted once."""
    temporary: int
    """Bytes in a sandbox's `/tmp` and `/dev/shm`, where these are not the machine's."""
    shallow: bool = True
    """Whether directories may not be nested too deeply to be measured."""


class Leash:
    """One running keeper. Closing its standard input, by design or by our death, makes it end all."""

    def __init__(self, fds: tuple[int, ...]) -> None:
        """Start it, with descriptors of this process to hand on; it waits for its order. Errors: OSError."""
        report, keeper_report = os.pipe()
        try:
            self._keeper = subprocess.Popen(  # noqa: S603 - our own program
                python(_KEEPER, str(keeper_report), guarding.mark()),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(keeper_report, *fds),
                env=environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            os.close(report)
            raise
        finally:
            os.close(keeper_report)
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        assert self._keeper.stderr is not None
        self._stdin = self._keeper.stdin
        self._pipes = {
            "stdout": self._keeper.stdout,
            "stderr": self._keeper.stderr,
            "report": os.fdopen(report, "rb", buffering=0),
        }
        self._until = math.inf
        self._reported = bytearray()
        self.over = False
        """Whether the keeper is gone, and with it all that it could end."""

    @property
    def outputs(self) -> dict[str, int]:
        """The descriptors to be read, by name: `stdout` and `stderr`, and `report`, which is for `look`."""
        return {name: pipe.fileno() for name, pipe in self._pipes.items()}

    def order(self, command: Command, seconds: float, until: float = math.inf) -> None:
        """Have it run the command, once. `until`: the lease that it begins under, as `renew` takes it."""
        self._until = until
        order = asdict(command) | {"cwd": str(command.cwd), "seconds": seconds, "until": until}
        if sys.platform != "linux":  # macOS refuses some limits that it names
            order |= {"limits": {}, "walls": None}
        data = marshal.dumps(order)
        self._say(len(data).to_bytes(8, "big") + data)

    def renew(self, until: float | None = None) -> None:
        """Tell it until when the lease holds, if that has changed: it ends all when that has passed. `math.inf`: no lease."""
        until = lease_clock.until() if until is None else until
        if until != self._until:
            self._until = until
            self._say(lease_clock.renewed(until))

    def cancel(self) -> None:
        """Have it end all, after the command's grace."""
        self._say(b"c")

    def _say(self, data: bytes) -> None:
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # a keeper that is gone shows in its report
            while view:
                view = view[self._stdin.write(view) or 0 :]

    def look(self) -> bytes:
        """Take what the keeper reports, empty when it is gone; waits until it reports something."""
        data = os.read(self._pipes["report"].fileno(), _READ)
        self._reported += data
        self.over = self.over or not data
        return data

    @property
    def started(self) -> bool:
        """Whether the command may have been started."""
        return bool(self._reported)

    @property
    def report(self) -> tuple[Any, int, int, bytes] | None:
        """The end, as the keeper tells it: `(ended, wait status, left alive, directory)`. None if it did not live to."""
        try:
            how, status, left, directory = marshal.loads(self._reported[_PID_AT.stop :])  # noqa: S302 - from our child
        except (EOFError, ValueError, TypeError):
            return None
        return how, status, left, directory

    def close(self) -> None:
        """Leave nothing behind: not the keeper, and if it died before its time, not the command's own group."""
        self._let_go()
        try:
            self._keeper.wait(END_SECONDS + 1)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        if len(self._reported) == _PID_AT.stop:
            with contextlib.suppress(OSError):
                os.killpg(int(self._reported[_PID_AT]), signal.SIGKILL)

    def forget(self) -> None:
        """In a fork: leave it to the process that started it."""
        self._let_go()
        self._keeper.returncode = 0

    def _let_go(self) -> None:
        for pipe in (self._stdin, *self._pipes.values()):
            pipe.close()


@dataclass(frozen=True)
class Ended:
    """How a command ended, with the proof that nothing of it is alive."""

    how: Literal["exited", "timeout", "cancelled", "lapsed", "over"]
    code: int
    """Exit code; 128 + n for a command killed by signal n."""
    directory: str
    """What it wrote to DIRECTORY_FD, empty for nothing."""
    why: str
    """Which wall it has run into, if it is `over`."""


def run_kept(command: Command, seconds: float, cancelled: threading.Event, output: OutputSoFar) -> Ended:
    """Run to the end, or end all of it at the time limit, at a wall or when cancelled.

    Errors: ToolError if it was never started, OutcomeUnknown if something of it may be alive.
    """
    try:
        leash = Leash(command.fds)
    except OSError as error:
        raise ToolError(f"could not be started: {error.strerror}") from error
    with contextlib.closing(leash):
        leash.order(command, seconds, lease_clock.until())
        _pump(leash, time.monotonic() + seconds + command.grace + END_SECONDS + SLACK_SECONDS, cancelled, output)
        return _ended(leash)


def _pump(leash: Leash, deadline: float, cancelled: threading.Event, output: OutputSoFar) -> None:
    """Collect output and report until the keeper and the command have closed them, or the deadline has passed."""
    told = False
    with selectors.DefaultSelector() as selector:
        for name, fd in leash.outputs.items():
            selector.register(fd, selectors.EVENT_READ, name)
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(_LOOK_SECONDS):
                data = leash.look() if key.data == "report" else os.read(key.fd, _READ)
                if not data:
                    selector.unregister(key.fd)
                if key.data != "report":
                    output.add(key.data, data)
                elif not data:  # what is still alive now may hold the output open for ever
                    deadline = min(deadline, time.monotonic() + 1)
            leash.renew()
            if cancelled.is_set() and not told:
                told = True
                leash.cancel()


def _ended(leash: Leash) -> Ended:
    if not leash.started:
        raise ToolError("not begun: " + LAPSED if lease_clock.lapsed() else "could not be started: its keeper failed")
    if leash.report is None:
        raise OutcomeUnknown("the shell's keeper died; its processes may be alive")
    how, status, left, directory = leash.report
    if left:
        raise OutcomeUnknown(f"{left} of the shell's processes could not be killed")
    code = os.waitstatus_to_exitcode(status)
    how, _, why = how.partition(":")
    return Ended(how, code if code >= 0 else 128 - code, os.fsdecode(directory), why)
