"""Descendants of a process and their resources, from /proc. Keepers load this module too, so it has few imports.

It keeps the promises that nothing of a call outlives the call and that a command stays inside its limits. A keeper cannot use
psutil, which a Python without site-packages does not find, and whose import takes longer than all others.
"""

from __future__ import annotations

import os
import signal
import sys

_PAGE = os.sysconf("SC_PAGE_SIZE")
_OPEN_FILES = 20_000
_TMPFS = ("tmp", "dev/shm")


def read_or_empty(path: str) -> bytes:
    """Return a file of /proc; empty if its process is gone or belongs to another user."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    """Return a process's parent, 0 if it is gone."""
    stat = read_or_empty(f"/proc/{pid}/stat")
    return int(stat.rpartition(b")")[2].split()[1]) if stat else 0


def is_dead(pid: int) -> bool:
    """True if a process is gone or a zombie."""
    stat = read_or_empty(f"/proc/{pid}/stat")
    return not stat or stat.rpartition(b")")[2].split()[0] in {b"Z", b"X"}


def with_argument(word: bytes) -> list[int]:
    """Return the other processes with this word as an argument. Zombies have no command line."""
    return [pid for pid in _pids() if pid != os.getpid() and word in read_or_empty(f"/proc/{pid}/cmdline").split(b"\0")]


def descendants(*tops: int) -> list[tuple[int, int]]:
    """Return every descendant of these processes, with its parent; parents first."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        if parent := parent_of(pid):
            children.setdefault(parent, []).append(pid)
    pairs, todo = [], list(tops)
    while todo:
        parent = todo.pop()
        below = children.get(parent, [])
        pairs += [(pid, parent) for pid in below]
        todo += below
    return pairs


def _pids() -> list[int]:
    names = os.listdir("/proc") if sys.platform == "linux" else []  # noqa: PTH208
    return [int(name) for name in names if name.isdigit()]


def send(pid: int, parent: int, number: int) -> None:
    """Send a process a signal, never a newer process with the same pid. Raises OSError."""
    if parent == os.getpid():
        os.kill(pid, number)  # a child of this process keeps its pid until its collection
        return
    pidfd = os.pidfd_open(pid)
    try:
        if parent_of(pid) == parent:
            signal.pidfd_send_signal(pidfd, number)
    finally:
        os.close(pidfd)


def children(pid: int, task: str = "") -> list[int]:
    """Return the children of a process, or of one of its threads."""
    return [int(child) for child in read_or_empty(f"/proc/{pid}/task/{task or pid}/children").split()]


def family(most: int) -> tuple[list[int], int]:
    """Return the descendants of this process and the number of their threads. Stops soon after `most` threads.

    Cheaper than `descendants`, but may miss a process that is being forked: good for counting, not for killing.
    """
    pids: list[int] = []
    todo, threads = [os.getpid()], 0
    while todo and threads <= most:
        pid = todo.pop()
        try:
            tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        except OSError:
            continue
        if pid != os.getpid():
            pids.append(pid)
            threads += len(tasks)
        for task in tasks[: most + 1]:
            todo += children(pid, task)
    return pids, threads


def memory(pids: list[int], limit: int) -> int:
    """Return the bytes of memory of these processes. Exact only above the limit, as the exact number costs more."""
    most = sum(int((read_or_empty(f"/proc/{pid}/statm").split() or [b"", b"0"])[1]) for pid in pids) * _PAGE
    return most if most <= limit else sum(map(_share, pids))


def _share(pid: int) -> int:
    """Return the process's own anonymous pages, and its share of pages in common with other processes."""
    size = 0
    for line in read_or_empty(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
            size += int(line.split()[1]) * 1024
    return size


def nameless(pids: list[int], device: int) -> tuple[int, int]:
    """Return the bytes of open files without a name in any folder: on that device, and in memory (memfd).

    Raises OverflowError if too many files are open.
    """
    disk_bytes = memory_bytes = files = 0
    inodes = set()
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
                if status.st_nlink or not status.st_blocks or (status.st_dev, status.st_ino) in inodes:
                    continue
                inodes.add((status.st_dev, status.st_ino))
                if status.st_dev == device:
                    disk_bytes += status.st_blocks * 512
                elif os.readlink(path).startswith("/memfd:"):  # noqa: PTH115
                    memory_bytes += status.st_blocks * 512
            except OSError:
                continue
    return disk_bytes, memory_bytes


def temporary_files(pids: list[int]) -> int:
    """Return the number of files in a sandbox's own `/tmp` and `/dev/shm`, which are in memory. bubblewrap limits their bytes
    alone."""
    for pid in reversed(pids):  # the deepest process is certainly inside the sandbox
        try:
            if os.stat(f"/proc/{pid}/root/tmp").st_dev == os.stat("/tmp").st_dev:  # noqa: PTH116, S108
                continue  # no sandbox, or not yet
            systems = [os.statvfs(f"/proc/{pid}/root/{folder}") for folder in _TMPFS]
        except OSError:
            continue
        return sum(system.f_files - system.f_ffree for system in systems)
    return 0
