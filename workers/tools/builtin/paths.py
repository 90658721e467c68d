"""Paths that cannot leave the workdir.

Each component is opened from the folder before it, without following links. So a link that appears between check and use is an
error and is not followed. This module follows links itself, as long as they stay inside.
"""

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from assent import ToolError
from workers.leash import quota
from workers.tools.clean import escape_controls

_PATH_BYTES = 4096
_NAME_BYTES = 255
_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class FilePlace:
    """A name in an open folder. `name` was not a link when it was checked; `.` is the folder itself."""

    folder: int
    name: str
    label: str
    """The path in the input, safe to show."""

    def kind(self) -> int | None:
        """Return the mode from lstat, None if nothing is there."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def file_mode(self) -> int | None:
        """Return the mode of a regular file, None if nothing is there. Raises ToolError for anything else."""
        mode = self.kind()
        if mode is not None:
            _require_file(mode, self.label)
        return mode


Targets = Mapping[str, "str | Exception"]
"""By path: the result of `resolve` when the policy judged the call, or the error."""


@contextlib.contextmanager
def located(workdir: Path, path: str, targets: Targets | None = None, *, make_folders: bool = False) -> Iterator[FilePlace]:
    """Yield the place of a path, relative or absolute. Raises ToolError if the path leads outside, or a folder of it is missing.

    A path in `targets` must still lead to the same place: no link is followed any more. Every OSError of the block becomes a
    ToolError that names the path.
    """
    label = escape_controls(path[:200])
    with contextlib.ExitStack() as stack, _as_tool_error(label):
        target = (targets or {}).get(path)
        if isinstance(target, Exception):
            raise target
        walk = _Walk(workdir, label, follows=target is None)
        stack.callback(walk.close)
        name = walk.go(_components(workdir, path if target is None else target, label), make_folders)
        yield FilePlace(walk.here, name, label)


def resolve(workdir: Path, path: str) -> str:
    """Return the target of a path: relative to the workdir, without links. A missing name is not a link. Raises ToolError."""
    label = escape_controls(path[:200])
    with contextlib.ExitStack() as stack, _as_tool_error(label):
        walk = _Walk(workdir, label)
        stack.callback(walk.close)
        try:
            name = walk.go(_components(workdir, path, label), make=False)
        except FileNotFoundError:
            if ".." in walk.todo:
                raise
            name = "/".join(walk.todo)
        return "/".join([*walk.names, *([] if name == "." else [name])]) or "."


def directory(workdir: Path, path: str) -> Path:
    """Return the absolute path of a directory in the workdir. Raises ToolError for anything else, and for a path with `..` or a
    link."""
    label = escape_controls(path[:200])
    if ".." in path.split("/"):
        raise ToolError(f"{label}: must not contain `..`; name the directory from the working directory")
    names = _components(workdir, path, label)
    target = resolve(workdir, path)
    if target != ("/".join(names) or "."):
        raise ToolError(f"{label}: is a symbolic link; name the directory itself, {escape_controls(target[:200])}")
    with located(workdir, path, {path: target}) as place:
        os.close(open_folder(place))
    return workdir.joinpath(*names)


def open_file(place: FilePlace) -> int:
    """Return a file descriptor to read a regular file. Refuses anything else before it opens it."""
    # Check before, because opening some devices has effects, and after, on the open file.
    _require_file(os.stat(place.name, dir_fd=place.folder, follow_symlinks=False).st_mode, place.label)
    fd = os.open(place.name, _READ, dir_fd=place.folder)
    try:
        _require_file(os.fstat(fd).st_mode, place.label)
    except ToolError:
        os.close(fd)
        raise
    return fd


def open_folder(place: FilePlace) -> int:
    """Return a file descriptor of a folder, to search below it."""
    return os.open(place.name, _FOLDER, dir_fd=place.folder)


def _require_file(mode: int, label: str) -> None:
    if stat.S_ISDIR(mode):
        raise ToolError(f"{label}: is a directory")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{label}: is not a regular file")


class _Walk:
    """The folders from the workdir down to the current one, all open."""

    def __init__(self, workdir: Path, label: str, *, follows: bool = True) -> None:
        self._workdir = workdir
        self._label = label
        self._follows = follows
        self._links = 0
        self._open = [os.open(workdir, _FOLDER)]
        self.names: list[str] = []
        """Names of the folders below the workdir."""
        self.todo: deque[str] = deque()
        """The remaining names, the current one first."""

    @property
    def here(self) -> int:
        return self._open[-1]

    def go(self, names: list[str], make: bool) -> str:
        """Walk to the folder of the last name. Returns that name, which is not a link, or `.` for the folder itself."""
        self.todo.extend(names)
        while self.todo:
            name = self.todo[0]
            if name == "..":
                self.leave()
            elif (target := _link(name, self.here)) is not None:
                if not self._follows:
                    raise ToolError(f"{self._label}: leads elsewhere than when this call was judged; nothing was done")
                self.todo.popleft()
                self.todo.extendleft(reversed(self.follow(target)))
                continue
            elif len(self.todo) == 1:
                return name
            else:
                self.enter(name, make)
            self.todo.popleft()
        return "."

    def enter(self, name: str, make: bool) -> None:
        if make:
            if len(self.names) + len(self.todo) > quota.DEEP + 1:
                raise ToolError(f"{self._label}: leads through more than {quota.DEEP} folders; nothing was changed")
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=self.here)
        self._open.append(os.open(name, _FOLDER, dir_fd=self.here))
        self.names.append(name)

    def leave(self) -> None:
        if len(self._open) == 1:
            raise _outside(self._label)
        os.close(self._open.pop())
        self.names.pop()

    def follow(self, target: str) -> list[str]:
        """Return the components that replace a link."""
        self._links += 1
        if self._links > _LINKS:
            raise ToolError(f"{self._label}: too many symbolic links")
        if not target.startswith("/"):
            return [part for part in target.split("/") if part not in ("", ".")]
        components = _components(self._workdir, target, self._label)
        while len(self._open) > 1:
            self.leave()
        return components

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)


def _components(workdir: Path, path: str, label: str) -> list[str]:
    """Return the names below the workdir, with `.` and `..` resolved in the text."""
    if not path or "\0" in path:
        raise ToolError(f"{label!r}: a path must not be empty or contain NUL")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise ToolError(f"{label}: a path must be valid UTF-8") from None
    below = os.path.relpath(os.path.normpath(workdir / path), workdir)
    parts = [] if below == "." else below.split("/")
    if parts[:1] == [".."]:
        raise _outside(label)
    if size > _PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in parts):
        raise ToolError(f"{label}: the path is too long ({_PATH_BYTES} bytes, {_NAME_BYTES} per name)")
    return parts


def _link(name: str, folder: int) -> str | None:
    """Return the target of a link; None if there is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _outside(label: str) -> ToolError:
    return ToolError(f"{label}: is outside the working directory")


@contextlib.contextmanager
def _as_tool_error(label: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Not str(error): it may hold a path of this machine.
        raise ToolError(f"{label}: {(error.strerror or 'cannot be used').lower()}") from error
