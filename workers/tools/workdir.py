"""The folders of sessions, and which storage they are on."""

import contextlib
import os
import random
import re
import secrets
import shutil
import subprocess
from pathlib import Path

from models.settings import settings
from workers.tools.sandbox import quota

_STORAGE = ".storage"
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def storage_id(root: Path) -> str:
    """The id of the storage behind a workdir root, made if there is none. All who ask at once get the same.

    Errors: OSError if the root cannot be made, read or written.
    """
    final = root / _STORAGE
    if not final.exists():
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _offer_id(final)
    return (final / "id").read_text().strip()


def _offer_id(final: Path) -> None:
    # A folder with something in it replaces none that has something in it: the first rename wins, on every file system.
    offer = final.with_name(f"{_STORAGE}-{secrets.token_hex(8)}")
    offer.mkdir(mode=0o700)
    (offer / "id").write_text(f"stor_{secrets.token_hex(16)}\n")
    try:
        offer.rename(final)
    except OSError:
        shutil.rmtree(offer)
        if not final.exists():
            raise


def session_root(session_id: str) -> Path:
    """The session's own folder, with `files/` (what tools see) and `state/` in it, all for this user only.

    Errors: ValueError for what is no session id; OSError.
    """
    root = _place(session_id)
    for folder in (root, root / "files", root / "state"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root


def remove(session_id: str) -> None:
    """Delete the session's folder with all that is in it. Does nothing if there is none. Errors: OSError if it cannot."""
    root = _place(session_id)
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(root)
    if root.exists():
        # What a shell command closed (`chmod 0`), or nested deeper than Python can go.
        subprocess.run(["chmod", "-R", "u+rwx", str(root)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603, S607
        subprocess.run(["rm", "-rf", "--", str(root)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603, S607
    if root.exists():
        raise OSError(f"{root} cannot be removed")


def full(files: Path, size: int = 0) -> str | None:
    """A sentence if that folder of a session has no room for so many bytes more, or its disk has not; None if there is room."""
    limits = settings()
    use = quota.used(str(files), limits.workdir_bytes, limits.workdir_files)
    if problem := use.problem(limits.workdir_bytes, limits.workdir_files):
        return problem
    if use.bytes + size > limits.workdir_bytes:
        return f"the working directory holds {use.bytes} bytes of the {limits.workdir_bytes} that it may; {size} more do not fit"
    return quota.disk_problem(str(files), limits.workdir_free_bytes + size)


def sessions(limit: int) -> list[str]:
    """The ids of sessions that have a folder here, in any order; at most `limit`, not always the same ones."""
    try:
        found = [entry.name for entry in os.scandir(settings().workdir_root) if _SESSION.fullmatch(entry.name)]
    except FileNotFoundError:
        return []
    return random.sample(found, min(limit, len(found)))


def _place(session_id: str) -> Path:
    if not _SESSION.fullmatch(session_id):
        raise ValueError(f"session id {session_id[:130]!r}: use letters, digits, _ and -")
    return settings().workdir_root.resolve() / session_id
