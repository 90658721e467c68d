"""Keeps commands, one after the other: a program of its own, run by `start.program("keeper", MARK)`.

It keeps the promise that nothing of a call outlives the call: the keeper kills every descendant of its command, however deep or
detached, when the command exits, its time is over, it exceeds a limit, the worker cancels it, or the worker dies. bubblewrap's PID
namespace alone would not do: it counts no disk space or memory, and holds neither toolsets nor `ASSENT_SHELL=bare`. Control groups
could count, but most containers may not make any. The sentinel (`sentinel.py`) finds keepers by MARK and enforces the lease.

Standard input is a socket, whose end of file means that the worker is dead. The worker sends an order: 8 bytes of length, with the
descriptors for the command's standard output, its standard error, and the order's `fds`; then marshal (both ends are the same
Python). One more byte cancels. The keeper sends the command's pid in 10 digits before the command begins, and at the end, when no
descendant is alive, 8 bytes of length and marshal of `(ended, wait status, left alive, directory)`. Without this end the outcome is
unknown. A worker that waits no longer refuses the pid, and the command then never begins. A command that exits by itself leaves the
keeper as it was, so the keeper waits for the next order: the start of a Python takes longer than a short command.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import signal
import socket
import sys
import time

from . import clock, processes, watch

TYPE_CHECKING = False  # the import of typing takes longer than all others
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

SET_PDEATHSIG, SET_DUMPABLE, SET_SUBREAPER, SET_NO_NEW_PRIVS = 1, 4, 36, 38
ORPHANS_SECONDS = 0.25  # pause between two collections of dead orphans while the command runs
LOOK_SECONDS = 0.1  # pause between two looks at the resources of the command
END_SECONDS = 5.0
"""How long killed processes may take to vanish before they count as left alive."""
DIRECTORY_FD = 250
"""The command writes its last directory here, behind a NUL; the last one counts."""
MOST_FDS = 250  # of one message; Linux sends no more than 253
SCANS_AFTER_SECONDS = 0.03  # how long killed children may take before all processes of the machine are searched for descendants

LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
if LIBC:
    LIBC.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]

statuses: dict[int, int] = {}  # wait status of the command by its pid, after its collection


def main() -> None:
    """Keep one command after the other, until the worker is dead or a command did not exit by itself."""
    prctl(SET_DUMPABLE, 0)  # a command has the same user, and must not change the keeper through /proc
    # Orphaned descendants become children of this process, so that the keeper reaches each of them.
    if not prctl(SET_SUBREAPER, 1):
        return
    os.umask(0o022)
    hold_signals()
    with socket.socket(fileno=0) as worker:
        while (message := receive(worker)) and keep(worker, *message):
            pass


def hold_signals() -> None:
    """Do nothing at these signals: only the worker ends a keeper. A command has the default actions, as exec ends handlers."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, lambda *_: None)


def receive(worker: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next order and its descriptors; None if the worker died before its end."""
    header, fds, _, _ = socket.recv_fds(worker, 8, MOST_FDS)
    for fd in fds:
        os.set_inheritable(fd, False)
    size, data = int.from_bytes(header, "big"), b""
    while len(data) < size:
        piece = worker.recv(size - len(data))
        if not piece:
            return None
        data += piece
    return (marshal.loads(data), fds) if size else None  # noqa: S302 - from the worker, the parent


def keep(worker: socket.socket, order: dict[str, Any], fds: list[int]) -> bool:
    """Keep one command to its end, and close the descriptors. Returns True if the keeper may keep another one."""
    if clock.now() >= order["until"]:
        return False
    if order["walls"]:
        quietly(prioritize, 0)
    directory, command_end = os.pipe()
    files = {number: nameless_file(data) for number, data in order["files"].items()}
    descriptors = {0: empty_pipe(), DIRECTORY_FD: command_end, **files, **dict(zip((1, 2, *order["fds"]), fds, strict=True))}
    command = start(order, descriptors)
    how = "orphaned"
    try:
        for fd in descriptors.values():  # only the command holds them: end of file means that all of it has ended
            os.close(fd)
        walls = watch.Watch(order["walls"]) if order["walls"] else None
        how = wait_for_end(command, time.monotonic() + order["seconds"], walls)
        if how in ("timeout", "cancelled") and order["grace"]:
            terminate(command, itself=not order["sandboxed"])
            how = "orphaned" if wait_for_end(command, time.monotonic() + order["grace"], walls) == "orphaned" else how
    finally:
        status, survivors = end_all(command)
    if how == "orphaned":
        return False
    end = marshal.dumps((how, status, survivors, read_directory(directory)))
    os.close(directory)
    worker.sendall(len(end).to_bytes(8, "big") + end)
    return how == "exited" and not survivors


def prioritize(pid: int) -> None:
    """Give a process real-time priority, so that a fork bomb cannot starve the keeper. Its children get normal priority.

    Only root may, and only root needs it: the kernel limits the number of other users' processes.
    """
    os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def prctl(option: int, value: int) -> bool:
    """Call Linux's prctl. Returns True if it worked. Does nothing on other systems, where a keeper ends the command's process group
    alone."""
    return LIBC is None or LIBC.prctl(option, value, 0, 0, 0) == 0


def nameless_file(data: bytes) -> int:
    """Return the descriptor of a nameless file with this content, at its beginning."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("input")
    else:
        import tempfile  # slow to import, and not needed on Linux

        file, path = tempfile.mkstemp()
        os.unlink(path)  # noqa: PTH108 - pathlib is slow to import
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def empty_pipe() -> int:
    """Return the descriptor of a pipe at its end. The owner of /dev/null could change its mode through a descriptor."""
    pipe, other_end = os.pipe()
    os.close(other_end)
    return pipe


def start(order: dict[str, Any], descriptors: dict[int, int]) -> int:
    """Fork and execute the command; its pid. A command that cannot be started exits with 127 and the reason on stderr.

    The command gets `descriptors`, by number. With any, it first sends its pid to the worker, by standard input. The child does as
    little as possible: each page that it touches is copied.
    """
    limits = [(getattr(resource, name), limit) for name, limit in order["limits"].items()]
    limits = [(kind, lowest(limit, resource.getrlimit(kind)[1])) for kind, limit in limits]
    pid = os.fork()
    if pid == 0:
        try:
            become(order, descriptors, limits)
        except BaseException as error:  # noqa: BLE001 - the child must never return
            quietly(os.write, 2, f"cannot start {order['argv'][0]}: {error}\n".encode())
        os._exit(127)
    return pid


def lowest(limit: int, hard: int) -> tuple[int, int]:
    """Return a soft and a hard limit: `limit`, or the present hard limit if it is lower."""
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    return limit, limit


def become(order: dict[str, Any], descriptors: dict[int, int], limits: list[tuple[int, tuple[int, int]]]) -> NoReturn:
    """Undo the keeper's settings and become the command, in the child."""
    prctl(SET_DUMPABLE, 1)
    prctl(SET_PDEATHSIG, signal.SIGKILL)
    if not order["sandboxed"]:
        prctl(SET_NO_NEW_PRIVS, 1)  # no descendant can become another user, whom the keeper could not kill
    os.setsid()
    if descriptors:
        os.write(0, b"%10d" % os.getpid())
    for number, fd in descriptors.items():
        os.dup2(fd, number)
    for kind, limit in limits:
        resource.setrlimit(kind, limit)
    # If the machine runs out of memory, the kernel kills the command before the worker.
    quietly(lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"1000"))
    os.chdir(order["cwd"])
    if clock.now() >= order["until"]:
        raise TimeoutError("the lease of its worker has ended")
    os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - without a shell on purpose


def wait_for_end(command: int, deadline: float, walls: watch.Watch | None) -> str:
    """Wait until the command has to end. Returns exited, timeout, cancelled, orphaned, or `over:` and a sentence."""
    try:
        end, pause = [os.pidfd_open(command)], LOOK_SECONDS if walls else ORPHANS_SECONDS
    except (AttributeError, OSError):  # macOS, an old kernel
        end, pause = [], 0.01
    try:
        while True:
            seconds = deadline - time.monotonic()
            ready = select.select([0, *end], [], [], max(min(seconds, pause), 0))[0]
            if has_exited(command):
                return "exited"
            if 0 in ready:
                return "cancelled" if os.read(0, 1) else "orphaned"
            if seconds <= 0:
                return "timeout"
            if walls and (problem := walls.problem()):
                return f"over:{problem}"
    finally:
        for pidfd in end:
            os.close(pidfd)


def terminate(command: int, *, itself: bool) -> None:
    """Send SIGTERM to all descendants; to the command too if `itself`."""
    for pid, parent in processes.descendants(os.getpid()):
        if itself or pid != command:
            quietly(processes.send, pid, parent, signal.SIGTERM)


def has_exited(command: int) -> bool:
    """Collect dead orphans. True if the command is dead, which stays uncollected, so that its pid is not used again."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13, without orphans to collect
        statuses.update([] if command in statuses else [os.waitpid(command, os.WNOHANG)])
        return command in statuses
    while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if dead.si_pid == command:
            return True
        os.waitpid(dead.si_pid, 0)
    return False


def end_all(command: int) -> tuple[int | None, int]:
    """Kill until no descendant is left. The command's wait status, and the number of processes that do not die.

    A subreaper without a child has no descendant: an orphan becomes its child at once.
    """
    for pid in (command, *processes.children(command)):  # a sandbox's first process needs the processor to die; then all others die
        quietly(prioritize, pid)
    quietly(os.killpg, command, signal.SIGKILL)  # the whole group at once, so that no member can fork
    quietly(os.kill, command, signal.SIGKILL)  # the command may not lead its group yet
    pause, deadline = 0.001, time.monotonic() + END_SECONDS
    own = os.getpid()
    while True:
        try:
            while (collected := os.waitpid(-1, os.WNOHANG))[0]:
                if collected[0] == command:
                    statuses[command] = collected[1]
        except ChildProcessError:
            return statuses.pop(command, None), 0
        scans = pause >= SCANS_AFTER_SECONDS
        alive = processes.descendants(own) if scans else [(pid, own) for pid in processes.children(own)]
        if time.monotonic() > deadline:
            return statuses.get(command), max(len(alive), 1)
        for pid, parent in alive:
            quietly(processes.send, pid, parent, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def quietly(act: Callable[..., object], *arguments: object) -> None:
    """Call a function and ignore its failure: the process is gone, another user's, or the kernel too old."""
    try:  # noqa: SIM105 - contextlib is slow to import
        act(*arguments)
    except (AttributeError, OSError):
        pass


def read_directory(fd: int) -> bytes:
    """Return the last directory that the command wrote, b"" for none."""
    os.set_blocking(fd, False)
    try:
        return os.read(fd, 65_536).rpartition(b"\0")[2].removesuffix(b"\n")  # a pipe holds no more
    except BlockingIOError:
        return b""
