"""Paths that cannot leave the workdir.

Every component is opened from the folder before it and never through a link, so that a link swapped in between
check and use meets an error instead of being followed. Links are followed here, by hand, while they stay inside.
"""

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workers.tools.clean import visible
from workers.tools.kinds import ToolError

_PATH_BYTES = 4096
_NAME_BYTES = 255
_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class Place:
    """A name in a folder that is held open. `name` was no link when it was looked at; `.` is the folder itself."""

    folder: int
    name: str
    shown: str
    """The path as it was asked for, safe to show."""

    def kind(self) -> int | None:
        """The mode from lstat, None if nothing is there."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def located(workdir: Path, path: str, *, make_folders: bool = False) -> Iterator[Place]:
    """Where a path leads, relative or absolute. Errors: ToolError if it leads outside, or nowhere before its last name.

    Also turns every OSError of the block into a ToolError that names the path.
    """
    shown = visible(path[:200])
    with contextlib.ExitStack() as stack, _as_tool_error(shown):
        todo = deque(_components(workdir, path, shown))
        walk = _Walk(workdir, shown)
        stack.callback(walk.close)
        while todo:
            name = todo.popleft()
            if name == "..":
                walk.leave()
            elif (target := _link(name, walk.here)) is not None:
                todo.extendleft(reversed(walk.follow(target)))
            elif not todo:
                yield Place(walk.here, name, shown)
                return
            else:
                walk.enter(name, make_folders)
        yield Place(walk.here, ".", shown)


def open_file(place: Place) -> int:
    """A file descriptor to read a regular file; anything else is refused before it is opened."""
    # Before, since opening some devices has effects; and after, on what was opened.
    _require_file(os.stat(place.name, dir_fd=place.folder, follow_symlinks=False).st_mode, place.shown)
    fd = os.open(place.name, _READ, dir_fd=place.folder)
    try:
        _require_file(os.fstat(fd).st_mode, place.shown)
    except ToolError:
        os.close(fd)
        raise
    return fd


def open_folder(place: Place) -> int:
    """A file descriptor of a folder, to search below it."""
    return os.open(place.name, _FOLDER, dir_fd=place.folder)


def _require_file(mode: int, shown: str) -> None:
    if stat.S_ISDIR(mode):
        raise ToolError(f"{shown}: is a directory")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{shown}: is not a regular file")


class _Walk:
    """The folders from the workdir down to where we are, all held open."""

    def __init__(self, workdir: Path, shown: str) -> None:
        self._workdir = workdir
        self._shown = shown
        self._links = 0
        self._open = [os.open(workdir, _FOLDER)]

    @property
    def here(self) -> int:
        return self._open[-1]

    def enter(self, name: str, make: bool) -> None:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=self.here)
        self._open.append(os.open(name, _FOLDER, dir_fd=self.here))

    def leave(self) -> None:
        if len(self._open) == 1:
            raise _outside(self._shown)
        os.close(self._open.pop())

    def follow(self, target: str) -> list[str]:
        """The components to go on with after a link."""
        self._links += 1
        if self._links > _LINKS:
            raise ToolError(f"{self._shown}: too many symbolic links")
        if not target.startswith("/"):
            return [part for part in target.split("/") if part not in ("", ".")]
        components = _components(self._workdir, target, self._shown)
        while len(self._open) > 1:
            self.leave()
        return components

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)


def _components(workdir: Path, path: str, shown: str) -> list[str]:
    """The names below the workdir, with `.` and `..` resolved in the text."""
    if not path or "\0" in path:
        raise ToolError(f"{shown!r}: a path must not be empty nor contain NUL")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise ToolError(f"{shown}: a path must be valid UTF-8") from None
    below = os.path.relpath(os.path.normpath(workdir / path), workdir)
    parts = [] if below == "." else below.split("/")
    if parts[:1] == [".."]:
        raise _outside(shown)
    if size > _PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in parts):
        raise ToolError(f"{shown}: the path is too long ({_PATH_BYTES} bytes, {_NAME_BYTES} per name)")
    return parts


def _link(name: str, folder: int) -> str | None:
    """What a link says, None for what is no link or is not there."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _outside(shown: str) -> ToolError:
    return ToolError(f"{shown}: is outside the working directory")


@contextlib.contextmanager
def _as_tool_error(shown: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Not str(error): it may hold a path of this machine.
        raise ToolError(f"{shown}: {(error.strerror or 'cannot be used').lower()}") from error
