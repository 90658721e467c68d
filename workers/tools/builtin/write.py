"""`write`: a whole file. Also replaces files for `edit`."""

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from typing import Any

from assent import ToolError
from models.policy.built_in_tools import DECLARATIONS
from workers.tools.builtin import paths
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.sandbox import workdir

FILE_BYTES = 10_000_000
TEMPORARY = ".assent-"
"""Beginning of the names of half-written files. A worker that dies may leave one; searches skip them."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def _write(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    data = encode(fields["content"], "content")
    with only_writer(context):
        require_room(context, len(data))  # before any folder is made
        with paths.located(context.workdir, fields["file_path"], context.path_targets, make_folders=True) as place:
            mode = place.file_mode()
            replace(context, place, data, 0o644 if mode is None else mode)
    return text_result(f"{'created' if mode is None else 'replaced'} {place.label} ({len(data)} bytes)")


def encode(text: str, field: str) -> bytes:
    """Return the text as UTF-8. Raises ToolError for lone surrogates and for too many bytes."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{field}: is not valid Unicode") from None
    if len(data) > FILE_BYTES:
        raise ToolError(f"{field}: has {len(data)} bytes, more than the {FILE_BYTES} that a file may have")
    return data


def require_room(context: ToolContext, size: int) -> None:
    """Raises ToolError if the session has no room for so many bytes."""
    if problem := workdir.full(context.workdir, size):
        raise ToolError(f"{problem}; nothing was changed")


def replace(context: ToolContext, place: paths.FilePlace, data: bytes, mode: int) -> None:
    """Replace a file in one move: readers see the old or the new content, never a part."""
    temporary = f"{TEMPORARY}{secrets.token_hex(8)}.tmp"
    fd = os.open(temporary, _NEW_FILE, 0o600, dir_fd=place.folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode & 0o777)
            os.fsync(file.fileno())
        context.require_lease()
        os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=place.folder)
        raise


@contextlib.contextmanager
def only_writer(context: ToolContext) -> Iterator[None]:
    """Hold the session's lock for writes and edits, over all workers: calls of one turn run at the same time.

    Raises ToolError if the lock is not free within the call's time limit, or after a cancel.
    """
    deadline = time.monotonic() + context.seconds
    with (context.state / "files.lock").open("wb") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline or context.cancelled.wait(0.005):
                    raise ToolError("another write in this session is taking too long; nothing was changed") from None
        yield


WRITE = Tool(
    **vars(DECLARATIONS["write"]),
    idempotent=True,
    prompt="Write file: {file_path}",
    run=_write,
)
