"""The worker's side of the programs: starts a keeper with a command, ends it, and reads how the command ended."""

import contextlib
import io
import marshal
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from workers.leash import lease
from workers.leash.lease import LAPSED
from workers.leash.programs import processes
from workers.leash.programs.keeper import DIRECTORY_FD, END_SECONDS
from workers.leash.programs.sentinel import keepers_mark
from workers.leash.start import environment, program

__all__ = ["DIRECTORY_FD", "Command", "CommandEnd", "Leash", "MayBeAlive", "NotStarted", "Walls", "launcher", "run"]

Output = Callable[[str, bytes], object]
"""Takes the next bytes of `stdout` or `stderr`."""

_LOOK_SECONDS = 0.05
"""Pause between two looks for a cancel."""
SLACK_SECONDS = 5.0
"""How late a keeper may report."""
_READ = 1 << 16
_KEEPER_AT, _PID_AT = slice(10), slice(10, 20)


class NotStarted(Exception):
    """The command never started: nothing happened."""


class MayBeAlive(Exception):
    """A process of the command may still be alive, so that the outcome of the command is unknown."""


@dataclass(frozen=True)
class Command:
    """A command. `argv[0]` is an absolute path; `env` is the whole environment."""

    argv: list[str]
    env: dict[str, str]
    cwd: Path
    limits: dict[str, int]
    """By name in the module `resource`; soft and hard."""
    files: dict[int, bytes] = field(default_factory=dict)
    """Contents that the command reads at a descriptor."""
    fds: tuple[int, ...] = ()
    """Descriptors of this process that the command inherits, at the same numbers, which are above DIRECTORY_FD."""
    sandboxed: bool = False
    """True if `argv` only holds a sandbox: it may raise its privileges, and SIGTERM is for its descendants alone."""
    grace: float = 0
    """Seconds between SIGTERM and SIGKILL, at the time limit and after a cancel; 0: SIGKILL at once."""
    walls: "Walls | None" = None


@dataclass(frozen=True)
class Walls:
    """Limits of all processes of a command together. A command that exceeds one is soon killed."""

    folder: str
    bytes: int
    """Of the folder, on disk."""
    files: int
    """In the folder, directories among them; and as many again in a sandbox's own `/tmp` and `/dev/shm`."""
    free: int
    """Bytes that must stay free on the folder's disk."""
    processes: int
    """Processes and threads."""
    memory: int
    """Bytes. Shared memory counts once."""
    shallow: bool = True
    """True if directories that are nested too deeply to be measured end the command."""


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended. None of its processes is alive."""

    how: str
    """`exited`, `timeout`, `cancelled`, `lapsed` or `over`."""
    code: int
    """Exit code; -n for a command killed by signal n."""
    directory: str
    """The last directory that the command wrote to DIRECTORY_FD, empty for none."""
    problem: str
    """The limit that the command exceeded, if `how` is `over`."""

    def reason(self, seconds: float) -> str | None:
        """Return why the command was killed, for the model; None if it ended by itself. `seconds` is its time limit."""
        reasons = {
            "timeout": f"timed out after {seconds:g} s",
            "cancelled": "cancelled",
            "lapsed": f"ended: {LAPSED}",
            "over": f"ended: {self.problem}",
        }
        return reasons.get(self.how)


class _Keepers:
    """The parent of this process's keepers."""

    def __init__(self) -> None:
        self._parent: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._lock = threading.Lock()

    def fork(self, fds: list[int]) -> None:
        """Have a keeper forked with these descriptors: those of `keeper.keep`. Starts another parent if somebody killed it.

        Raises OSError.
        """
        mark = lease.mark()
        with self._lock:
            if not self._send(fds):
                self._start(mark)
                self._send(fds)

    def kill(self, keeper: int) -> None:
        """Kill a keeper that does not end. No-op if it has ended."""
        if self._parent:
            with contextlib.suppress(AttributeError, OSError):  # AttributeError: macOS
                processes.send(keeper, self._parent.pid, signal.SIGKILL)

    def forget(self) -> None:
        """Leave the keepers to the process that started their parent."""
        if self._requests and self._parent:
            self._requests.close()
            self._parent.returncode = 0

    def _send(self, fds: list[int]) -> bool:
        """Send the descriptors; False if no parent runs."""
        if self._requests is None or self._parent is None:
            return False
        try:
            socket.send_fds(self._requests, [b"k"], fds)
        except (BrokenPipeError, ConnectionResetError):
            self._requests.close()
            self._parent.wait()
            self._requests = None
        return self._requests is not None

    def _start(self, mark: str) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._parent = subprocess.Popen(  # noqa: S603 - Assent's own program
                program("keeper", keepers_mark(mark)),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._requests = ours


_keepers = _Keepers()


def _forget() -> None:
    global _keepers  # noqa: PLW0603 - one per process: in a fork, the keepers belong to the parent
    _keepers.forget()
    _keepers = _Keepers()


os.register_at_fork(after_in_child=_forget)


class Leash:
    """One command under a keeper, which kills all its processes when `close` or the end of this process closes the pipe."""

    def __init__(self, command: Command, seconds: float = math.inf, until: float = math.inf) -> None:
        """Start the command with its time limit, unless the clock of the leases has reached `until` by then. Raises OSError."""
        assert all(fd > DIRECTORY_FD for fd in command.fds)
        (stdin, ours), (our_stdout, stdout), (our_stderr, stderr) = os.pipe(), os.pipe(), os.pipe()
        self._report, report = socket.socketpair()
        self._stdin = os.fdopen(ours, "wb", buffering=0)
        self._open: dict[str, io.RawIOBase] = {
            "stdout": os.fdopen(our_stdout, "rb", buffering=0),
            "stderr": os.fdopen(our_stderr, "rb", buffering=0),
            "report": self._report.makefile("rb", buffering=0),
        }
        """The pipes to read, without those that were read to their end."""
        self._reported = bytearray()
        self.over = False
        """True if the keeper has ended, after all processes that it could kill."""
        try:
            _keepers.fork([stdin, stdout, stderr, report.fileno(), *command.fds])
        except OSError:
            self.forget()
            raise
        finally:
            report.close()
            for fd in (stdin, stdout, stderr):
                os.close(fd)
        walls = vars(command.walls) if command.walls else None
        order = vars(command) | {"cwd": str(command.cwd), "walls": walls, "seconds": seconds, "until": until}
        if sys.platform != "linux":  # macOS refuses some limits that it names
            order |= {"limits": {}, "walls": None}
        data = marshal.dumps(order)
        self._send(len(data).to_bytes(8, "big") + data)

    @property
    def is_open(self) -> bool:
        """True if there may be more output or a report to read."""
        return bool(self._open)

    def cancel(self) -> None:
        """Kill all, after the command's grace."""
        self._send(b"c")

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # the report tells that the keeper has ended
            while view:
                view = view[self._stdin.write(view) or 0 :]

    def listen(self, seconds: float, output: Output | None, *others: Connection) -> None:
        """Wait up to `seconds` for output, the report or `others`, and read both. Drops output if `output` is None."""
        ready = wait([*(pipe.fileno() for pipe in self._open.values()), *others], seconds)
        for name, pipe in list(self._open.items()):
            if pipe.fileno() not in ready:
                continue
            data = pipe.read(_READ) or b""
            if not data:
                pipe.close()
                del self._open[name]
                self.over = self.over or name == "report"
            elif name == "report":
                self._reported += data
            elif output:
                output(name, data)

    def kill(self, output: Output | None = None) -> None:
        """Kill the command with all its descendants, and wait until the keeper reports the end."""
        self.cancel()
        self._await_end(END_SECONDS + SLACK_SECONDS, output)
        self.over = True

    def _await_end(self, seconds: float, output: Output | None = None) -> None:
        """Wait up to `seconds` until the keeper has ended."""
        deadline = time.monotonic() + seconds
        while "report" in self._open and (remaining := deadline - time.monotonic()) > 0:
            self.listen(remaining, output)

    def end(self) -> CommandEnd:
        """Return how the command ended. Raises NotStarted and MayBeAlive."""
        if not self._reported:
            self._refuse()
        if not self._reported:
            raise NotStarted("not begun: " + LAPSED if lease.lapsed() else "could not be started: its keeper failed")
        try:
            how, status, survivors, directory = marshal.loads(self._reported[_PID_AT.stop :])  # noqa: S302 - from a child of this process
        except (EOFError, ValueError, TypeError):
            raise MayBeAlive("its keeper died; its processes may be alive") from None
        if survivors:
            raise MayBeAlive(f"{survivors} of its processes could not be killed")
        code = os.waitstatus_to_exitcode(status)
        how, _, problem = how.partition(":")
        if how == "exited" and code in (-signal.SIGKILL, 128 + signal.SIGKILL) and lease.lapsed():
            how = "lapsed"  # the sentinel killed the command
        return CommandEnd(how, code, os.fsdecode(directory), problem)

    def _refuse(self) -> None:
        """Have a keeper that has reported nothing yet never begin: its first report fails, and it ends."""
        with contextlib.suppress(OSError):  # it has ended
            self._report.shutdown(socket.SHUT_RD)
            self._reported += self._report.recv(_READ)

    def close(self) -> None:
        """End the keeper, and if it died too early, the command's own process group."""
        self._stdin.close()
        if not self._reported:
            self._refuse()
        if self._reported:
            self._await_end(END_SECONDS + 1)
            if "report" in self._open:
                _keepers.kill(int(self._reported[_KEEPER_AT]))
                self._await_end(1)
        self.forget()
        if len(self._reported) == _PID_AT.stop:
            with contextlib.suppress(OSError):
                os.killpg(int(self._reported[_PID_AT]), signal.SIGKILL)

    def forget(self) -> None:
        """Close the pipes alone: in a fork, the keeper belongs to the parent."""
        self._report.close()
        for pipe in (self._stdin, *self._open.values()):
            pipe.close()


def run(command: Command, seconds: float, cancelled: threading.Event, output: Output) -> CommandEnd:
    """Run a command to its end, or kill it at the time limit, at a limit of `walls`, after a cancel or with the lease.

    Raises NotStarted and MayBeAlive.
    """
    try:
        leash = Leash(command, seconds, lease.until())
    except OSError as error:
        raise NotStarted(f"could not be started: {error.strerror}") from error
    with contextlib.closing(leash):
        deadline = time.monotonic() + seconds + command.grace + END_SECONDS + SLACK_SECONDS
        is_cancelled = False
        while leash.is_open and time.monotonic() < deadline:
            leash.listen(_LOOK_SECONDS, output)
            if leash.over:  # a process that could not be killed may hold the output open for ever
                deadline = min(deadline, time.monotonic() + 1)
            if cancelled.is_set() and not is_cancelled:
                is_cancelled = True
                leash.cancel()
        return leash.end()


def launcher(argv: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command line and environment under which other code may start a command, and end it by SIGTERM.

    All its descendants die when the command exits, after SIGTERM, when this process dies, and with the lease. The command gets
    the environment, to which the caller may add. Raises OSError.
    """
    return program("launcher", str(os.getpid()), lease.mark(), *argv), environment()
