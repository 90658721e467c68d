"""Bytes and files in a folder, and their limits. Keepers load this module too, so it has few imports.

It keeps the promise that a command stays inside its quota. The kernel's disk quotas need root and a file system made for them.
"""

from __future__ import annotations

import os

DEEP = 200
"""Levels of folders. Deeper folders cannot be measured and are not allowed."""
_PATH_ONLY = getattr(os, "O_PATH", 0)  # Linux
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Use:
    """The content of a folder. Counting stops soon after a limit."""

    def __init__(self) -> None:
        self.bytes = 0
        self.files = 0
        self.deep = False
        self._inodes: set[tuple[int, int]] = set()

    def add(self, status: os.stat_result) -> None:
        """Count an entry. A file with several names counts once."""
        self.files += 1
        if status.st_nlink > 1:
            if (key := (status.st_dev, status.st_ino)) in self._inodes:
                return
            self._inodes.add(key)
        self.bytes += status.st_blocks * 512

    def problem(self, most_bytes: int, most_files: int) -> str | None:
        """Return the exceeded limit, as a sentence; None for none."""
        if self.deep:
            return f"the working directory has directories nested more than {DEEP} deep"
        if self.files > most_files:
            return f"the working directory holds more than the {most_files} files that it may"
        if self.bytes > most_bytes:
            return f"the working directory holds {self.bytes} bytes, more than the {most_bytes} that it may"
        return None


def measure(path: str, most_bytes: int, most_files: int) -> Use:
    """Measure a folder without following links, even while files change. Raises OSError if there is no folder."""
    use = Use()
    folder = os.open(path, _FOLDER)
    try:
        _count(use, folder, 0, most_bytes, most_files)
    finally:
        os.close(folder)
    return use


def _count(use: Use, folder: int, depth: int, most_bytes: int, most_files: int) -> None:
    below = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
                use.add(status)
                if entry.is_dir(follow_symlinks=False):
                    below.append((entry.name, status.st_mode & 0o500 != 0o500))
            except OSError:  # gone meanwhile
                continue
            if use.problem(most_bytes, most_files):
                return
    if below and depth == DEEP:
        use.deep = True
        return
    for name, is_closed in below:
        try:
            inner, mode = _open_up(name, folder) if is_closed else (os.open(name, _FOLDER, dir_fd=folder), None)
        except OSError:
            continue
        try:
            _count(use, inner, depth + 1, most_bytes, most_files)
        finally:
            if mode is not None:
                os.fchmod(inner, mode)
            os.close(inner)
        if use.problem(most_bytes, most_files):
            return


def _open_up(name: str, folder: int) -> tuple[int, int]:
    """Open a folder that nobody may read (`chmod 0`). Returns its descriptor and the mode to restore."""
    place = os.open(name, _PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        itself, mode = f"/proc/self/fd/{place}", os.fstat(place).st_mode & 0o7777
        os.chmod(itself, mode | 0o500)  # noqa: PTH101 - pathlib is slow to import
        return os.open(itself, _FOLDER & ~os.O_NOFOLLOW), mode
    finally:
        os.close(place)


def disk_problem(path: str, least_free: int) -> str | None:
    """Return a sentence if the disk under the path has fewer free bytes than `least_free`, else None."""
    status = os.statvfs(path)
    free = status.f_bavail * status.f_frsize
    return None if free >= least_free else f"the disk has {free} bytes free, less than the {least_free} that must stay free"
