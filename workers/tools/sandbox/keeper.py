"""Holds one command on a leash: a program of its own, run by path as `python -I -S keeper.py REPORT_FD MARK`.

It starts the command in a new session and ends everything that came of it, however deep or detached, when the
command exits, when its time is over, when it runs into a wall, when the worker says so, when the worker is gone, and
when the worker does not renew its lease in time, frozen as it may be.

Standard input is the leash: first the order (8 bytes of length, then marshal: both ends are the same Python), later
what `lease_clock.Lease` hears: a cancel, or a renewed lease. End of file means that the worker is dead. Standard output
and error are the command's. REPORT_FD gets one byte before the command is started, its pid in 10 digits after, and at
the end, once nothing is alive that could be killed, marshal of `(ended, wait status, left alive, directory)`. Without
that end nobody knows. By MARK the worker's sentinel (`sentinel.py`) knows this process.
"""

from __future__ import annotations

import ctypes  # few imports, and none but the standard library: this starts with every shell call
import marshal
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

if TYPE_CHECKING or __package__:
    from workers.tools.sandbox import lease_clock, processes, watch
else:
    # As the last place, so that nothing there stands in for the standard library.
    sys.path.append(os.path.dirname(__file__).removesuffix("/__pycache__"))  # noqa: PTH120 - pathlib is slow to import
    import lease_clock
    import processes
    import watch

SET_PDEATHSIG, SET_DUMPABLE, SET_SUBREAPER, SET_NO_NEW_PRIVS = 1, 4, 36, 38
ORPHANS_SECONDS = 0.25
"""How often processes whose parents died are collected while the command runs."""
LOOK_SECONDS = 0.1
"""How often what a command uses is looked at."""
END_SECONDS = 5.0
"""How long killed processes may take to vanish before they count as left alive."""
DIRECTORY_FD = 250
"""Where the command writes its last directory, behind a NUL; the last one counts."""

statuses: dict[int, int] = {}  # by pid, of the command once it is collected


def main() -> None:
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the worker decides when it is over
        signal.signal(ignored, signal.SIG_IGN)
    order = read_order()
    # Orphans below become children of this process, so that none is out of reach.
    if order is None or not prctl(SET_SUBREAPER, 1):
        return
    lease = lease_clock.Lease(0, order["until"])
    if lease.lapsed:
        return
    prctl(SET_DUMPABLE, 0)  # the command, being the same user, must not write the report by way of /proc
    directory_end, command_end = os.pipe()
    if order.get("walls"):
        quietly(hurry, 0)
    os.write(report, b"s")
    command = start(order, command_end, lease)
    ended = "orphaned"
    try:
        nothing = os.open("/dev/null", os.O_WRONLY)
        for fd in (1, 2, command_end):  # left to the command: their end of file says that nobody holds them any more
            os.dup2(nothing, fd)
        os.write(report, b"%10d" % command)
        walls = watch.Watch(order["walls"]) if order.get("walls") else None
        ended = look_after(command, time.monotonic() + order["seconds"], walls, lease)
        if ended in ("timeout", "cancelled") and (grace := order.get("grace")):
            tell(command, order["tell_itself"])
            again = look_after(command, time.monotonic() + grace, walls, lease)
            ended = again if again in ("orphaned", "lapsed") else ended
    finally:
        status, left = end_all(command)
    if ended == "exited" and status == signal.SIGKILL and lease_clock.now() >= lease.until:
        ended = "lapsed"  # the sentinel was faster
    if ended != "orphaned":
        os.write(report, marshal.dumps((ended, status, left, read_directory(directory_end))))


def hurry(pid: int) -> None:
    """Have it run before all others, which only root may: for root's processes the kernel knows no limit in number.

    A command that forks without end would else starve who is to end it. What it forks itself runs as others do.
    """
    os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def prctl(option: int, value: int) -> bool:
    """Linux's prctl, and whether it worked. Elsewhere nothing, and only the command's own process group is ended."""
    numbers = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    return sys.platform != "linux" or bool(ctypes.CDLL(None).prctl(option, *numbers) == 0)


def read_order() -> dict[str, Any] | None:
    """What the worker wants run; None if the worker died while saying it."""
    size, data = int.from_bytes(os.read(0, 8), "big"), b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            return None
        data += piece
    order: dict[str, Any] | None = marshal.loads(data) if size else None  # noqa: S302 - from the worker, our parent
    return order


def start(order: dict[str, Any], directory: int, lease: lease_clock.Lease) -> int:
    """Fork and execute the command; its pid. A command that cannot be started exits with 127 and says why."""
    pid = os.fork()
    if pid == 0:
        try:
            become(order, directory, lease)
        except BaseException as error:  # noqa: BLE001 - this is the child: it must never return
            os.write(2, f"cannot start {order['argv'][0]}: {error}\n".encode())
        os._exit(127)
    return pid


def become(order: dict[str, Any], directory: int, lease: lease_clock.Lease) -> NoReturn:
    """In the child: leave the keeper's ways behind and become the command."""
    prctl(SET_DUMPABLE, 1)
    prctl(SET_PDEATHSIG, signal.SIGKILL)
    if order["no_new_privileges"]:
        prctl(SET_NO_NEW_PRIVS, 1)  # nothing below can become another user, whom we could not kill
    os.setsid()
    os.umask(0o022)
    give_files(order["files"])  # before a limit can refuse them
    for name, limit in order["limits"].items():
        hard = resource.getrlimit(getattr(resource, name))[1]
        lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(getattr(resource, name), (lowest, lowest))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(directory, DIRECTORY_FD)
    # An empty pipe, not /dev/null: whoever owns /dev/null could change its mode by the descriptor.
    nothing, other_end = os.pipe()
    os.close(other_end)
    os.dup2(nothing, 0)
    for fd in order["fds"]:
        os.set_inheritable(fd, True)
    # A machine out of memory shall kill the command, not the worker.
    quietly(lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"1000"))
    os.chdir(order["cwd"])
    if lease.lapsed:
        raise TimeoutError("the lease of its worker has run out")
    os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - no shell between is what we want


def give_files(files: dict[int, bytes]) -> None:
    """Each text as an open, nameless file at the descriptor of that number."""
    for fd, data in files.items():
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
        os.dup2(file, fd)


def look_after(command: int, deadline: float, walls: watch.Watch | None, lease: lease_clock.Lease) -> str:
    """Wait until the command has to end, and say why: exited, timeout, cancelled, orphaned, lapsed, or `over:` and a sentence."""
    try:
        wanted, pause = [0, os.pidfd_open(command)], LOOK_SECONDS if walls else ORPHANS_SECONDS
    except (AttributeError, OSError):  # macOS, an old kernel
        wanted, pause = [0], 0.01
    while True:
        left = deadline - time.monotonic()
        ready = select.select(wanted, [], [], max(min(left, pause, lease.until - lease_clock.now()), 0))[0]
        if has_exited(command):
            return "exited"
        if 0 in ready and (said := lease.hear()):
            return said
        if lease.lapsed:
            return "lapsed"
        if left <= 0:
            return "timeout"
        if walls and (why := walls.problem()):
            return f"over:{why}"


def tell(command: int, itself: bool) -> None:
    """Ask all of it to end (SIGTERM). `itself`: the command too, which is not asked where it only holds a sandbox."""
    for pid, parent in processes.descendants(os.getpid()):
        if itself or pid != command:
            quietly(processes.send, pid, parent, signal.SIGTERM)


def has_exited(command: int) -> bool:
    """Collect the orphans that are dead; whether the command is. It stays uncollected, so that its pid stays its own."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13, where there are no orphans to collect
        statuses.update([] if command in statuses else [os.waitpid(command, os.WNOHANG)])
        return command in statuses
    while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if dead.si_pid == command:
            return True
        os.waitpid(dead.si_pid, 0)
    return False


def end_all(command: int) -> tuple[int | None, int]:
    """Kill until nothing is left. The command's wait status, and how many processes would not die.

    That a subreaper has no child proves that it has no descendant: an orphan becomes its child at once.
    """
    for pid in (command, *processes.children(command)):  # a sandbox's first process must run to die, and all die with it
        quietly(hurry, pid)
    quietly(os.killpg, command, signal.SIGKILL)  # in one stroke, faster than any of the group can fork
    quietly(os.kill, command, signal.SIGKILL)  # it may not lead its group yet
    pause, deadline = 0.001, time.monotonic() + END_SECONDS
    while True:
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == command:
                    statuses[command] = found[1]
        except ChildProcessError:
            return statuses.get(command), 0
        alive = processes.descendants(os.getpid())
        if time.monotonic() > deadline:
            return statuses.get(command), max(len(alive), 1)
        for pid, parent in alive:
            quietly(processes.send, pid, parent, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def quietly(act: Callable[..., object], *arguments: object) -> None:
    """Do it if it can be done: not if the process is gone or not ours to kill, or the kernel too old."""
    try:  # noqa: SIM105 - contextlib is slow to import
        act(*arguments)
    except (AttributeError, OSError):
        pass


def read_directory(fd: int) -> bytes:
    """What the command wrote last, b"" for nothing."""
    os.set_blocking(fd, False)
    try:
        data = os.read(fd, 65_536)  # no pipe holds more
    except BlockingIOError:
        return b""
    return data.rpartition(b"\0")[2].removesuffix(b"\n")


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(0)  # the interpreter's own farewell takes as long as its start
