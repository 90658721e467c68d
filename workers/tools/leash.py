"""The worker's side of the keeper: run a command, pump its output, know how it ended."""

import contextlib
import marshal
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from workers.tools import keeper
from workers.tools.interpreter import compiled, environment, python
from workers.tools.keeper import END_SECONDS
from workers.tools.kinds import OutcomeUnknown, ToolError
from workers.tools.output import OutputSoFar

_KEEPER = compiled(keeper.__file__)
_LOOK_SECONDS = 0.05
"""How often a cancel is looked for."""
_SLACK_SECONDS = 5.0
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


@dataclass(frozen=True)
class Ended:
    """How a command ended, with the proof that nothing of it is alive."""

    how: Literal["exited", "timeout", "cancelled", "over"]
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
    report_end, keeper_report = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            python(_KEEPER, str(keeper_report)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(keeper_report, *command.fds),
            env=environment(),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        os.close(report_end)
        raise ToolError(f"could not be started: {error.strerror}") from error
    finally:
        os.close(keeper_report)
    call = _Call(process, report_end, output)
    try:
        call.order(command, seconds)
        call.pump(time.monotonic() + seconds + command.grace + END_SECONDS + _SLACK_SECONDS, cancelled)
        return call.ended()
    finally:
        call.close()


class _Call:
    """One running keeper. Closing its standard input, by design or by our death, makes it end all."""

    def __init__(self, keeper: "subprocess.Popen[bytes]", report: int, output: OutputSoFar) -> None:
        self._keeper = keeper
        self._report_fd = report
        self._report = bytearray()
        self._output = output

    def order(self, command: Command, seconds: float) -> None:
        order = {
            "argv": command.argv,
            "env": command.env,
            "cwd": str(command.cwd),
            "limits": command.limits if sys.platform == "linux" else {},  # macOS refuses some that it names
            "files": command.files,
            "fds": command.fds,
            "no_new_privileges": command.no_new_privileges,
            "seconds": float(seconds),
            "grace": float(command.grace),
            "tell_itself": command.tell_itself,
            "walls": asdict(command.walls) if command.walls and sys.platform == "linux" else None,
        }
        data = marshal.dumps(order)
        self._say(len(data).to_bytes(8, "big") + data)

    def _say(self, data: bytes) -> None:
        assert self._keeper.stdin is not None
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # a keeper that is gone shows in its report
            while view:
                view = view[self._keeper.stdin.write(view) or 0 :]

    def pump(self, deadline: float, cancelled: threading.Event) -> None:
        """Collect output and report until the keeper and the command have closed them, or the deadline has passed."""
        told = False
        with selectors.DefaultSelector() as selector:
            selector.register(self._report_fd, selectors.EVENT_READ, "report")
            for stream in ("stdout", "stderr"):
                selector.register(getattr(self._keeper, stream), selectors.EVENT_READ, stream)
            while selector.get_map() and time.monotonic() < deadline:
                for key, _ in selector.select(_LOOK_SECONDS):
                    data = os.read(key.fd, _READ)
                    if not data:
                        selector.unregister(key.fd)
                    if key.data != "report":
                        self._output.add(key.data, data)
                        continue
                    self._report += data
                    if not data:  # what is still alive now may hold the output open for ever
                        deadline = min(deadline, time.monotonic() + 1)
                if cancelled.is_set() and not told:
                    told = True
                    self._say(b"c")

    def ended(self) -> Ended:
        if not self._report:
            raise ToolError("could not be started: its keeper failed")
        try:
            how, status, left, directory = marshal.loads(self._report[_PID_AT.stop :])  # noqa: S302 - from our child
        except (EOFError, ValueError, TypeError):
            raise OutcomeUnknown("the shell's keeper died; its processes may be alive") from None
        if left:
            raise OutcomeUnknown(f"{left} of the shell's processes could not be killed")
        code = os.waitstatus_to_exitcode(status)
        how, _, why = how.partition(":")
        return Ended(how, code if code >= 0 else 128 - code, os.fsdecode(directory), why)

    def close(self) -> None:
        """Leave nothing behind: not the keeper, and if it died before its time, not the command's own group."""
        for pipe in (self._keeper.stdin, self._keeper.stdout, self._keeper.stderr):
            assert pipe is not None
            pipe.close()
        os.close(self._report_fd)
        try:
            self._keeper.wait(END_SECONDS + 1)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        if len(self._report) == _PID_AT.stop:
            with contextlib.suppress(OSError):
                os.killpg(int(self._report[_PID_AT]), signal.SIGKILL)
