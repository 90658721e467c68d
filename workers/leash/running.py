"""The worker's side of the programs: starts a keeper with a command, ends it, and reads how the command ended."""

import contextlib
import marshal
import math
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from workers.leash import keepers, lease
from workers.leash.lease import LAPSED
from workers.leash.programs.keeper import DIRECTORY_FD, END_SECONDS
from workers.leash.start import environment, program

__all__ = ["DIRECTORY_FD", "Command", "CommandEnd", "Leash", "MayBeAlive", "NotStarted", "Walls", "launcher", "run"]

Output = Callable[[str, bytes], object]
"""Takes the next bytes of `stdout` or `stderr`."""

_LOOK_SECONDS = 0.05
"""Pause between two looks for a cancel."""
SLACK_SECONDS = 5.0
"""How late a keeper may report."""
_READ = 1 << 16
_PID_BYTES, _HEADER_BYTES = 10, 18
"""Of a keeper's report: the length of the pid, and of all that precedes the end."""


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


class Leash:
    """One command under a keeper, which kills all its processes when `close` or the end of this process closes the socket."""

    def __init__(self, command: Command, seconds: float = math.inf, until: float = math.inf) -> None:
        """Start the command with its time limit, unless the clock of the leases has reached `until` by then. Raises OSError."""
        assert all(fd > DIRECTORY_FD for fd in command.fds)
        self._keeper = keepers.take()
        self._open = {"report": self._keeper.socket.fileno()}
        """The descriptors to read, without those that were read to their end."""
        self._reported = bytearray()
        self._reusable = True
        """True if the keeper may keep another command after this one exits by itself."""
        self._is_closed = False
        self.over = False
        """True if the keeper has reported the end or has ended, after all processes that it could kill."""
        walls = vars(command.walls) if command.walls else None
        order = vars(command) | {"cwd": str(command.cwd), "walls": walls, "seconds": seconds, "until": until}
        if sys.platform != "linux":  # macOS refuses some limits that it names
            order |= {"limits": {}, "walls": None}
        try:
            self._send(marshal.dumps(order), command.fds)
        except OSError:
            keepers.end(self._keeper, 0)
            self._close_pipes()
            raise

    def _send(self, order: bytes, fds: tuple[int, ...]) -> None:
        """Send the order with the command's descriptors: new pipes, and `fds`."""
        theirs: list[int] = []
        try:
            for name in ("stdout", "stderr"):
                self._open[name], end = os.pipe()
                theirs.append(end)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the report tells that the keeper has ended
                socket.send_fds(self._keeper.socket, [len(order).to_bytes(8, "big")], [*theirs, *fds])
                self._keeper.socket.sendall(order)
        finally:
            for end in theirs:
                os.close(end)

    @property
    def is_open(self) -> bool:
        """True if there may be more output or a report to read."""
        return bool(self._open)

    def cancel(self) -> None:
        """Kill all, after the command's grace."""
        self._reusable = False  # the keeper may read this after the end of the command
        if "report" in self._open:
            with contextlib.suppress(OSError):  # the report tells that the keeper has ended
                self._keeper.socket.sendall(b"c")

    def listen(self, seconds: float, output: Output | None, *others: Connection) -> None:
        """Wait up to `seconds` for output, the report or `others`, and read both. Drops output if `output` is None."""
        poll = select.poll()
        for fd in (*self._open.values(), *(other.fileno() for other in others)):
            poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(1000 * seconds)}
        for name, fd in list(self._open.items()):
            if fd not in ready:
                continue
            if name == "report":
                self._read_report()
            elif data := os.read(fd, _READ):
                if output:
                    output(name, data)
            else:
                os.close(self._open.pop(name))

    def _read_report(self) -> None:
        try:
            data = self._keeper.socket.recv(_READ)
        except ConnectionResetError:  # a keeper that died did not read its order
            data = b""
        self._reported += data
        if not data or self._has_end:
            del self._open["report"]
            self.over = True

    @property
    def _has_end(self) -> bool:
        """True if the report is whole."""
        end = self._reported[_PID_BYTES:_HEADER_BYTES]
        return len(end) == 8 and len(self._reported) == _HEADER_BYTES + int.from_bytes(end, "big")

    def kill(self, output: Output | None = None) -> None:
        """Kill the command with all its descendants, and wait until the keeper reports the end."""
        self.cancel()
        self._await_end(END_SECONDS + SLACK_SECONDS, output)
        self.over = True

    def _await_end(self, seconds: float, output: Output | None = None) -> None:
        """Wait up to `seconds` until the keeper has reported the end or has ended."""
        deadline = time.monotonic() + seconds
        while "report" in self._open and (remaining := deadline - time.monotonic()) > 0:
            self.listen(remaining, output)

    def end(self) -> CommandEnd:
        """Return how the command ended. Raises NotStarted and MayBeAlive."""
        if not self._reported:
            self._refuse()
        if not self._reported:
            raise NotStarted("not begun: " + LAPSED if lease.lapsed() else "could not be started: its keeper failed")
        if not self._has_end:
            raise MayBeAlive("its keeper died; its processes may be alive")
        how, status, survivors, directory = marshal.loads(self._reported[_HEADER_BYTES:])  # noqa: S302 - from a child of this process
        if survivors:
            raise MayBeAlive(f"{survivors} of its processes could not be killed")
        code = os.waitstatus_to_exitcode(status)
        how, _, problem = how.partition(":")
        if how == "exited" and code in (-signal.SIGKILL, 128 + signal.SIGKILL) and lease.lapsed():
            how = "lapsed"  # the sentinel killed the command
        return CommandEnd(how, code, os.fsdecode(directory), problem)

    def _refuse(self) -> None:
        """Have a command that has reported nothing yet never begin: its report fails."""
        self._reusable = False
        with contextlib.suppress(OSError):  # the keeper has ended
            self._keeper.socket.shutdown(socket.SHUT_RD)
            self._reported += self._keeper.socket.recv(_READ)

    def close(self) -> None:
        """Free the keeper, or end it with its command; if the keeper died too early, kill the command's own process group."""
        if self._is_closed:
            return
        if not self._reported:
            self._refuse()
        if self._reusable and self._has_end and self.end().how == "exited":
            keepers.give_back(self._keeper)
        else:
            keepers.end(self._keeper, END_SECONDS + 1 if self._reported else 0)
        self._close_pipes()
        if self._reported and not self._has_end:
            with contextlib.suppress(OSError):
                os.killpg(int(self._reported[:_PID_BYTES]), signal.SIGKILL)

    def forget(self) -> None:
        """Close the descriptors alone: in a fork, the keeper belongs to the parent."""
        self._keeper.socket.close()
        self._close_pipes()

    def _close_pipes(self) -> None:
        self._is_closed = True
        self._open.pop("report", None)
        while self._open:
            os.close(self._open.popitem()[1])


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
