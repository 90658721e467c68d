"""The processes below one, and what they hold: by /proc. The keeper loads this too, so it imports next to nothing."""

from __future__ import annotations

import os
import signal
import sys

_PAGE = os.sysconf("SC_PAGE_SIZE")
_OPEN_FILES = 20_000
_TMPFS = ("tmp", "dev/shm")


def quietly_read(path: str) -> bytes:
    """A file of /proc; empty if its process is gone, or not ours to look at."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    """A process's parent, 0 if it is gone."""
    stat = quietly_read(f"/proc/{pid}/stat")
    return int(stat.rpartition(b")")[2].split()[1]) if stat else 0


def is_dead(pid: int) -> bool:
    """True if a process is gone or a zombie."""
    stat = quietly_read(f"/proc/{pid}/stat")
    return not stat or stat.rpartition(b")")[2].split()[0] in {b"Z", b"X"}


def marked(word: bytes) -> list[int]:
    """Every other process that has this word as an argument in its command line. Zombies have no command line."""
    return [pid for pid in _pids() if pid != os.getpid() and word in quietly_read(f"/proc/{pid}/cmdline").split(b"\0")]


def descendants(*tops: int) -> list[tuple[int, int]]:
    """Every process below these, and its parent; parents first."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        if parent := parent_of(pid):
            children.setdefault(parent, []).append(pid)
    found, todo = [], list(tops)
    while todo:
        parent = todo.pop()
        below = children.get(parent, [])
        found += [(pid, parent) for pid in below]
        todo += below
    return found


def _pids() -> list[int]:
    names = os.listdir("/proc") if sys.platform == "linux" else []  # noqa: PTH208
    return [int(name) for name in names if name.isdigit()]


def send(pid: int, parent: int, number: int) -> None:
    """Send this process a signal, and never another that has got its number meanwhile. Errors: OSError."""
    if parent == os.getpid():
        os.kill(pid, number)  # our own child keeps its number until we collect it
        return
    pidfd = os.pidfd_open(pid)
    try:
        if parent_of(pid) == parent:
            signal.pidfd_send_signal(pidfd, number)
    finally:
        os.close(pidfd)


def children(pid: int, task: str = "") -> list[int]:
    """The processes that this one, or one of its threads, has started."""
    return [int(child) for child in quietly_read(f"/proc/{pid}/task/{task or pid}/children").split()]


def family(most: int) -> tuple[list[int], int]:
    """The processes below this one, and how many threads they have. Looks no further than shortly behind `most` threads.

    Cheaper than `descendants`, and may miss what is forked at the moment: to count by, not to kill by.
    """
    found: list[int] = []
    todo, threads = [os.getpid()], 0
    while todo and threads <= most:
        pid = todo.pop()
        try:
            tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        except OSError:
            continue
        if pid != os.getpid():
            found.append(pid)
            threads += len(tasks)
        for task in tasks[: most + 1]:
            todo += children(pid, task)
    return found, threads


def memory(pids: list[int], limit: int) -> int:
    """Bytes of memory that these processes have for themselves. Exact only beyond the limit: that costs more to find out."""
    most = sum(int((quietly_read(f"/proc/{pid}/statm").split() or [b"", b"0"])[1]) for pid in pids) * _PAGE
    return most if most <= limit else sum(map(_share, pids))


def _share(pid: int) -> int:
    """Its own pages that are no file's, and its part of those that it shares (after a fork)."""
    size = 0
    for line in quietly_read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
            size += int(line.split()[1]) * 1024
    return size


def nameless(pids: list[int], device: int) -> tuple[int, int]:
    """Bytes of the files that these hold open and that no folder names: on that device, and in memory (memfd).

    Errors: OverflowError if they hold too many files open to count.
    """
    disk = held = files = 0
    seen = set()
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
        except OSError:
            continue
        files += len(names)
        if files > _OPEN_FILES:
            raise OverflowError(f"its processes held more than {_OPEN_FILES} files open")
        for name in names:
            path = f"/proc/{pid}/fd/{name}"
            try:
                status = os.stat(path)  # noqa: PTH116
                if status.st_nlink or not status.st_blocks or (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                if status.st_dev == device:
                    disk += status.st_blocks * 512
                elif os.readlink(path).startswith("/memfd:"):  # noqa: PTH115
                    held += status.st_blocks * 512
            except OSError:
                continue
    return disk, held


def temporary(pids: list[int]) -> tuple[int, int]:
    """Bytes and number of the files that a sandbox holds in memory, in `/tmp` and `/dev/shm` of its own."""
    for pid in reversed(pids):  # the deepest has its sandbox about it for certain
        size = files = 0
        try:
            if os.stat(f"/proc/{pid}/root/tmp").st_dev == os.stat("/tmp").st_dev:  # noqa: PTH116, S108
                continue  # no sandbox, or not yet
            for folder in _TMPFS:
                status = os.statvfs(f"/proc/{pid}/root/{folder}")
                size += (status.f_blocks - status.f_bfree) * status.f_frsize
                files += status.f_files - status.f_ffree
        except OSError:
            continue
        return size, files
    return 0, 0
