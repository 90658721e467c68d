"""Keeps commands: a program of its own, run by `start.program("keeper", MARK)`. It forks a keeper for each command.

It keeps the promise that nothing of a call outlives the call: the keeper kills every descendant of its command, however deep or
detached, when the command exits, its time is over, it exceeds a limit, the worker cancels it, or the worker dies. bubblewrap's PID
namespace alone would not do: it counts no disk space or memory, and holds neither toolsets nor `ASSENT_SHELL=bare`. Control groups
could count, but most containers may not make any. The sentinel (`sentinel.py`) finds keepers by MARK and enforces the lease.

A fork takes a tenth of the processor time of a start. So one process of a worker, the keepers' parent, starts and imports once.
Its standard input is a socket: each message of the worker brings the descriptors of one keeper, in the order of `keep`. End of file
means that the worker is dead. The keepers then end by themselves.

A keeper's standard input comes from the worker: the order (8 bytes of length, then marshal: both ends are the same Python), then
one byte to cancel. End of file means that the worker is dead. Standard output and error belong to the command. The report gets
the keeper's pid in 10 digits before the start of the command, the command's pid in 10 digits after it, and at the end, when no
descendant is alive, marshal of `(ended, wait status, left alive, directory)`. Without this end the outcome is unknown. A worker
that waits no longer refuses the report, and the command then never starts.
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
SCANS_AFTER_SECONDS = 0.004  # how long killed children may take before all processes of the machine are searched for descendants

statuses: dict[int, int] = {}  # wait status of the command by its pid, after its collection


def main() -> None:
    """Fork a keeper for each message, until the worker is dead."""
    prctl(SET_DUMPABLE, 0)  # a command has the same user, and must not change the keepers to come through /proc
    os.umask(0o022)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # only the worker ends a keeper
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, collect_keepers)
    requests = socket.socket(fileno=0)
    while True:
        data, fds, _, _ = socket.recv_fds(requests, 1, MOST_FDS)
        if not data:
            return
        try:
            pid = os.fork()
        except OSError:  # too many processes: the worker reads the end of the report
            pid = -1
        if pid == 0:
            requests.detach()
            keep(*fds)
            return
        for fd in fds:
            os.close(fd)


def collect_keepers(*_: object) -> None:
    """Collect dead keepers, in their parent."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def keep(stdin: int, stdout: int, stderr: int, report: int, *fds: int) -> None:
    """Keep one command, in a fork. `fds` are the descriptors that the command inherits, in the order of the order's `fds`."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for number, fd in enumerate((stdin, stdout, stderr)):
        os.dup2(fd, number)
        os.close(fd)
    os.set_inheritable(report, False)
    order = read_order()
    # Orphaned descendants become children of this process, so that the keeper reaches each of them.
    if order is None or not prctl(SET_SUBREAPER, 1) or clock.now() >= order["until"]:
        return
    for number, fd in zip(order["fds"], fds, strict=True):
        os.dup2(fd, number, inheritable=False)
        os.close(fd)
    if order.get("walls"):
        quietly(prioritize, 0)
    directory_end, command_end = os.pipe()
    os.write(report, b"%10d" % os.getpid())
    command = start(order, command_end)
    how = "orphaned"
    try:
        nothing = os.open("/dev/null", os.O_WRONLY)
        for fd in (1, 2, command_end):  # only the command holds them: end of file means that all of it has ended
            os.dup2(nothing, fd)
        os.write(report, b"%10d" % command)
        walls = watch.Watch(order["walls"]) if order.get("walls") else None
        how = wait_for_end(command, time.monotonic() + order["seconds"], walls)
        if how in ("timeout", "cancelled") and (grace := order.get("grace")):
            terminate(command, itself=not order["sandboxed"])
            how = "orphaned" if wait_for_end(command, time.monotonic() + grace, walls) == "orphaned" else how
    finally:
        status, survivors = end_all(command)
    if how != "orphaned":
        os.write(report, marshal.dumps((how, status, survivors, read_directory(directory_end))))


def prioritize(pid: int) -> None:
    """Give a process real-time priority, so that a fork bomb cannot starve the keeper. Its children get normal priority.

    Only root may, and only root needs it: the kernel limits the number of other users' processes.
    """
    os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def prctl(option: int, value: int) -> bool:
    """Call Linux's prctl. Returns True if it worked. Does nothing on other systems, where a keeper ends the command's process group
    alone."""
    numbers = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    return sys.platform != "linux" or bool(ctypes.CDLL(None).prctl(option, *numbers) == 0)


def read_order() -> dict[str, Any] | None:
    """Return the worker's order; None if the worker died before its end."""
    size, data = int.from_bytes(os.read(0, 8), "big"), b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            return None
        data += piece
    return dict(marshal.loads(data)) if size else None  # noqa: S302 - from the worker, the parent


def start(order: dict[str, Any], directory: int | None = None) -> int:
    """Fork and execute the command; its pid. A command that cannot be started exits with 127 and the reason on stderr."""
    pid = os.fork()
    if pid == 0:
        try:
            become(order, directory)
        except BaseException as error:  # noqa: BLE001 - the child must never return
            os.write(2, f"cannot start {order['argv'][0]}: {error}\n".encode())
        os._exit(127)
    return pid


def become(order: dict[str, Any], directory: int | None) -> NoReturn:
    """Undo the keeper's settings and become the command, in the child."""
    prctl(SET_DUMPABLE, 1)
    prctl(SET_PDEATHSIG, signal.SIGKILL)
    if not order["sandboxed"]:
        prctl(SET_NO_NEW_PRIVS, 1)  # no descendant can become another user, whom the keeper could not kill
    os.setsid()
    give_files(order["files"])  # before a limit can refuse them
    for name, limit in order["limits"].items():
        hard = resource.getrlimit(getattr(resource, name))[1]
        lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(getattr(resource, name), (lowest, lowest))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if directory is not None:
        os.dup2(directory, DIRECTORY_FD)
    if 0 not in order["fds"]:
        # An empty pipe, not /dev/null: the owner of /dev/null could change its mode through the descriptor.
        nothing, other_end = os.pipe()
        os.close(other_end)
        os.dup2(nothing, 0)
    for fd in order["fds"]:
        os.set_inheritable(fd, True)
    # If the machine runs out of memory, the kernel kills the command before the worker.
    quietly(lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"1000"))
    os.chdir(order["cwd"])
    if clock.now() >= order["until"]:
        raise TimeoutError("the lease of its worker has ended")
    os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - without a shell on purpose


def give_files(files: dict[int, bytes]) -> None:
    """Open each text as a nameless file at the descriptor of its number."""
    for fd, data in files.items():
        if hasattr(os, "memfd_create"):
            file = os.memfd_create("input")
        else:
            import tempfile  # slow to import, and not needed on Linux

            file, path = tempfile.mkstemp()
            os.unlink(path)  # noqa: PTH108 - pathlib is slow to import
        with open(file, "wb", closefd=False) as stream:
            stream.write(data)
        os.lseek(file, 0, os.SEEK_SET)
        os.dup2(file, fd)


def wait_for_end(command: int, deadline: float, walls: watch.Watch | None) -> str:
    """Wait until the command has to end. Returns exited, timeout, cancelled, orphaned, or `over:` and a sentence."""
    try:
        sources, pause = [0, os.pidfd_open(command)], LOOK_SECONDS if walls else ORPHANS_SECONDS
    except (AttributeError, OSError):  # macOS, an old kernel
        sources, pause = [0], 0.01
    while True:
        seconds = deadline - time.monotonic()
        ready = select.select(sources, [], [], max(min(seconds, pause), 0))[0]
        if has_exited(command):
            return "exited"
        if 0 in ready:
            return "cancelled" if os.read(0, 1) else "orphaned"
        if seconds <= 0:
            return "timeout"
        if walls and (problem := walls.problem()):
            return f"over:{problem}"


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
            return statuses.get(command), 0
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
