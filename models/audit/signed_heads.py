"""The sealer's memory outside the database: the last head that it signed of each workspace's chain.

An intruder who owns the database could rebuild every chain and let the sealer sign the result. Therefore the sealer keeps these
heads in a file beside its key, and refuses to sign a chain that does not continue from its kept head:

    {"assent_signed_heads": 1, "began": "2026-...", "sealed_until": "2026-...", "heads": {"wrkspc_...": [57, "hash of act 57"]},
     "anchors": {"wrkspc_...": [41, "hash of act 41"]}}

`anchors` has the newest anchor of each workspace whose audit was cut (`models.audit.anchors`).
The file is replaced atomically, after the commit of the seals. So it may be older than the database, never newer. Sealers that
share a file take turns. Sealers with files of their own keep each other's signed heads as they read them. A sealer creates a
missing file only while the audit is empty, since it cannot distinguish a first start from a lost file otherwise: `assent audit key`
and `assent audit adopt` create it.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from models.audit.acts import time_text
from models.audit.seals import Head
from models.settings import settings

SAVE_SECONDS = 60
"""Without new heads, the file is written only when `sealed_until` is older than this."""


class NoHeads(Exception):
    """The file cannot be used. The message names the fault and the remedy."""


class InUse(Exception):
    """Another sealer holds the file."""


class SignedHeads:
    """The file, while its lock is held."""

    def __init__(
        self,
        path: Path,
        heads: dict[str, Head],
        began: datetime | None = None,
        sealed_until: datetime | None = None,
        anchors: dict[str, Head] | None = None,
    ) -> None:
        self.path = path
        self.began = began
        """The time of the first use. A workspace that was signed before is in the file, or this sealer does not know it."""
        self.sealed_until = sealed_until
        """The time up to which this sealer has seen all acts of all workspaces sealed. None: compare all chains."""
        self._heads = heads
        self._anchors = anchors or {}
        self._is_changed = False

    @property
    def workspace_ids(self) -> list[str]:
        """The workspaces whose chains were signed."""
        return list(self._heads)

    def each(self) -> list[tuple[str, Head]]:
        """Return each workspace with its signed head."""
        return list(self._heads.items())

    def of(self, workspace_id: str) -> Head | None:
        """Return the signed head of this workspace's chain, or None if none was signed."""
        return self._heads.get(workspace_id)

    def anchor_of(self, workspace_id: str) -> Head | None:
        """Return the newest anchor of this workspace, its act's number and hash, or None if its audit was never cut."""
        return self._anchors.get(workspace_id)

    def keep_anchor(self, workspace_id: str, anchor: Head) -> None:
        """Remember an anchor, from the next `save` on, unless a newer one is known."""
        if self._anchors.get(workspace_id, (0, ""))[0] < anchor[0]:
            self._anchors[workspace_id] = anchor
            self._is_changed = True

    def replace_anchor(self, workspace_id: str, anchor: Head | None) -> None:
        """Remember this anchor instead of the known one, from the next `save` on; None if there is none any more."""
        if anchor:
            self._anchors[workspace_id] = anchor
        else:
            self._anchors.pop(workspace_id, None)
        self._is_changed = True

    def keep(self, workspace_id: str, head: Head) -> None:
        """Remember a head, from the next `save` on."""
        if self._heads.get(workspace_id) != head:
            self._heads[workspace_id] = head
            self._is_changed = True

    def forget(self, workspace_id: str) -> None:
        """Forget a workspace that the database has no more, from the next `save` on."""
        self._heads.pop(workspace_id, None)
        self._anchors.pop(workspace_id, None)
        self._is_changed = True

    def begin(self, at: datetime) -> None:
        """Remember the time of the first use, unless it is known."""
        if self.began is None:
            self.began, self._is_changed = at, True

    def reach(self, until: datetime | None) -> None:
        """Remember the time up to which all acts are sealed. Without new heads, a short step is not worth a write of the file."""
        before = self.sealed_until
        self._is_changed |= until is None or before is None or (until - before).total_seconds() > SAVE_SECONDS
        if self._is_changed:
            self.sealed_until = until

    def content(self) -> dict[str, object]:
        """Return the file's JSON."""
        times = {name: time_text(at) if at else None for name, at in (("began", self.began), ("sealed_until", self.sealed_until))}
        return {**times, "heads": self._heads, "anchors": self._anchors}

    def save(self) -> None:
        """Write the file if anything changed. A crash leaves the old file or the new one."""
        if self._is_changed:
            _write(self)
            self._is_changed = False


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
    """Write a file without heads, for a new key. An existing file stays. Raises NoHeads if it cannot be written."""
    if file.exists():
        return
    try:
        _write(SignedHeads(file, {}))
    except OSError as error:
        raise NoHeads(f"{file} cannot be written: {error.strerror}") from None


@contextmanager
def open_file(file: Path, *, make_anew: bool = False, seconds: float = 0) -> Iterator[SignedHeads]:
    """Open and lock the file; save it at the end. Raises InUse, or NoHeads for a missing or damaged file.

    `make_anew` replaces such a file by one without heads, for an operator who confirms it. `seconds` limits the wait for the lock.
    """
    try:
        lock = os.open(file.with_name(file.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise NoHeads(f"{file}: {error.strerror}: set ASSENT_AUDIT_HEADS_FILE to a file that the sealer can write") from None
    try:
        _lock(lock, time.monotonic() + seconds)
        heads = _read_or_make(file) if make_anew else read(file)
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


def _read_or_make(file: Path) -> SignedHeads:
    try:
        return read(file)
    except NoHeads:
        heads = SignedHeads(file, {})
        _write(heads)
        return heads


def read(file: Path) -> SignedHeads:
    """Return the file's content, which only `open_file` may change. Raises NoHeads for a missing or damaged file."""
    remedy = "put it back, or after `assent audit verify` run `assent audit adopt`"
    try:
        content = json.loads(file.read_text("utf-8"))
        if content["assent_signed_heads"] != 1:
            raise ValueError
        heads, anchors = _heads_in(content["heads"]), _heads_in(content.get("anchors", {}))
        began, until = (datetime.fromisoformat(at) if (at := content[name]) else None for name in ("began", "sealed_until"))
        return SignedHeads(file, heads, began, until, anchors)
    except FileNotFoundError:
        raise NoHeads(f"{file} is missing: {remedy}") from None
    except OSError as error:
        raise NoHeads(f"{file} cannot be read ({error.strerror}): {remedy}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NoHeads(f"{file} is damaged: {remedy}") from None


def _heads_in(content: dict[str, list[object]]) -> dict[str, Head]:
    return {str(workspace_id): (int(str(seq)), str(hash_)) for workspace_id, (seq, hash_) in content.items()}


def _write(heads: SignedHeads) -> None:
    file = heads.path
    new = file.with_name(file.name + ".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as output:
        json.dump({"assent_signed_heads": 1, **heads.content()}, output)
        output.flush()
        os.fsync(output.fileno())
    new.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # so that the rename lasts
    finally:
        os.close(folder)
