"""The folders of sessions, and the id of their storage."""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from models.settings import settings
from models.settings.tools import STORAGE_ID
from workers.leash import quota

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def storage_id(root: Path) -> str:
    """Return the id of the storage of a workdir root, created if there is none. Concurrent callers get the same id.

    Raises OSError if the root cannot be created, read or written.
    """
    file = root / STORAGE_ID
    if not file.parent.exists():
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _offer_id(file.parent)
    return file.read_text().strip()


def _offer_id(final: Path) -> None:
    # A rename cannot replace a folder that is not empty: the first rename wins, on every file system.
    offer = final.with_name(f"{final.name}-{secrets.token_hex(8)}")
    offer.mkdir(mode=0o700)
    (offer / STORAGE_ID.name).write_text(f"stor_{secrets.token_hex(16)}\n")
    try:
        offer.rename(final)
    except OSError:
        shutil.rmtree(offer)
        if not final.exists():
            raise


def session_root(session_id: str) -> Path:
    """Return the session's own folder, with `files/` (for tools) and `state/`, all for this user alone.

    Raises ValueError for a malformed session id; OSError.
    """
    root = _place(session_id)
    for folder in (root, root / "files", root / "state"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root


def remove(session_id: str) -> None:
    """Delete the session's folder with its content. Idempotent. Raises OSError."""
    root = _place(session_id)
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(root)
    if root.exists():
        # A shell command may have closed folders (`chmod 0`), or nested them deeper than Python can go.
        subprocess.run(["chmod", "-R", "u+rwx", str(root)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603, S607
        subprocess.run(["rm", "-rf", "--", str(root)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603, S607
    if root.exists():
        raise OSError(f"{root} cannot be removed")


def full(files: Path, size: int = 0) -> str | None:
    """Return None if a session's folder and its disk have room for `size` more bytes, else a sentence."""
    limits = settings()
    use = quota.measure(str(files), limits.workdir_bytes, limits.workdir_files)
    if problem := use.problem(limits.workdir_bytes, limits.workdir_files):
        return problem
    if use.bytes + size > limits.workdir_bytes:
        return f"the working directory holds {use.bytes} bytes of the {limits.workdir_bytes} that it may; {size} more do not fit"
    return quota.disk_problem(str(files), limits.workdir_free_bytes + size)


def sessions(size: int) -> Iterator[list[str]]:
    """Yield the ids of all sessions with a folder here, `size` at a time."""
    try:
        names = [entry.name for entry in os.scandir(settings().workdir_root) if _SESSION.fullmatch(entry.name)]
    except FileNotFoundError:
        return
    for start in range(0, len(names), size):
        yield names[start : start + size]


def _place(session_id: str) -> Path:
    if not _SESSION.fullmatch(session_id):
        raise ValueError(f"session id {session_id[:130]!r}: use letters, digits, _ and -")
    return settings().workdir_root.resolve() / session_id
