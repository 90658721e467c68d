"""The sealer's memory outside the database: the last head that it signed of each workspace's chain.

An intruder who owns the database could rebuild every chain and let the sealer sign the result. Therefore `models.audit.seals` keeps
these heads in a file beside its key, and refuses to sign a chain that does not continue from its kept head:

    {"assent_signed_heads": 1, "heads": {"wrkspc_...": [57, "hash of act 57"]}}

The file is replaced atomically, after the commit of the seals. So it may be older than the database, never newer. One sealer at a
time holds its lock. A sealer never creates a missing file, since it cannot tell a first start from a lost file: `assent audit key`
and `assent audit trust-heads` create it.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from models.settings import settings

Head = tuple[int, str]
"""A chain's length, and the hash of its last act."""


class NoHeads(Exception):
    """The file cannot be used. The message names the fault and the remedy."""


class InUse(Exception):
    """Another sealer holds the file."""


class SignedHeads:
    """The file, while its lock is held."""

    def __init__(self, path: Path, heads: dict[str, Head]) -> None:
        self.path = path
        self._heads = heads
        self._changed = False

    @property
    def workspace_ids(self) -> list[str]:
        """The workspaces whose chains were signed."""
        return list(self._heads)

    def of(self, workspace_id: str) -> Head | None:
        """Return the signed head of this workspace's chain, or None if none was signed."""
        return self._heads.get(workspace_id)

    def keep(self, workspace_id: str, head: Head) -> None:
        """Remember a head, from the next `save` on."""
        self._heads[workspace_id] = head
        self._changed = True

    def save(self) -> None:
        """Write the file if anything changed. A crash leaves the old file or the new one."""
        if self._changed:
            _write(self.path, self._heads)
            self._changed = False


def path() -> Path:
    """Return the file's path according to the settings. Raises NoHeads."""
    s = settings()
    if s.audit_heads_file:
        return s.audit_heads_file
    if s.audit_key_file and s.audit_key is None:
        return beside(s.audit_key_file)
    raise NoHeads("ASSENT_AUDIT_KEY has no file to keep signed heads beside: set ASSENT_AUDIT_HEADS_FILE, on a disk that lasts")


def beside(key_file: Path) -> Path:
    """Return the path of the heads that belong to a key file."""
    return key_file.with_name(key_file.name + ".heads")


def make(file: Path) -> None:
    """Write a file without heads, for a new key. An existing file stays."""
    if not file.exists():
        _write(file, {})


@contextmanager
def opened(file: Path, *, make_anew: bool = False, seconds: float = 0) -> Iterator[SignedHeads]:
    """Open and lock the file; save it at the end. Raises InUse, or NoHeads for a missing or damaged file.

    `make_anew` replaces such a file by one without heads, for an operator who confirms it. `seconds` limits the wait for the lock.
    """
    try:
        lock = os.open(file.with_name(file.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise NoHeads(f"{file}: {error.strerror}: set ASSENT_AUDIT_HEADS_FILE to a file that the sealer can write") from None
    try:
        _lock(lock, time.monotonic() + seconds)
        heads = SignedHeads(file, _begun(file) if make_anew else _read(file))
        try:
            yield heads
        finally:
            heads.save()
    finally:
        os.close(lock)


def _lock(descriptor: int, until: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise InUse from None
            time.sleep(0.02)


def _begun(file: Path) -> dict[str, Head]:
    try:
        return _read(file)
    except NoHeads:
        _write(file, {})
        return {}


def _read(file: Path) -> dict[str, Head]:
    remedy = "put it back, or after `assent audit verify` run `assent audit trust-heads`"
    try:
        content = json.loads(file.read_text("utf-8"))
        if content["assent_signed_heads"] != 1:
            raise ValueError
        return {str(workspace_id): (int(seq), str(hash_)) for workspace_id, (seq, hash_) in content["heads"].items()}
    except FileNotFoundError:
        raise NoHeads(f"{file} is missing: {remedy}") from None
    except OSError as error:
        raise NoHeads(f"{file} cannot be read ({error.strerror}): {remedy}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NoHeads(f"{file} is damaged: {remedy}") from None


def _write(file: Path, heads: dict[str, Head]) -> None:
    new = file.with_name(file.name + ".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as output:
        json.dump({"assent_signed_heads": 1, "heads": heads}, output)
        output.flush()
        os.fsync(output.fileno())
    new.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # so that the rename lasts
    finally:
        os.close(folder)
