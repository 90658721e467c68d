"""Rotation: encrypts the secrets in rows, and the parts of the archive, anew, with the present public key of their reader.

The content of a part is never changed. So a part gets a copy, which takes its place in one transaction; a sweep removes the old one
an hour later.
"""

from datetime import timedelta
from typing import Any

from models.audit.principal import system
from models.database import clock, encryption, ids
from models.database.encryption import Reader
from models.database.rows import Stale
from models.database.transactions import transaction
from models.errors import Conflict, NotFound
from models.notices.channel import Channel
from models.outbox.endpoint import Endpoint
from models.session.archive import contents
from models.session.archive.contents import Fault
from models.session.archive.part import WRITING, ArchivePart
from models.session.locked import lock_alone
from models.settings import settings
from models.workspace.provider_key import ProviderKey

BATCH = 100
"""Rows of one transaction."""
COLUMNS: dict[Reader, tuple[tuple[type[Any], str], ...]] = {
    "deliver": ((Endpoint, "secret"), (Endpoint, "previous_secret"), (Channel, "secret")),
    "turns": ((ProviderKey, "ciphertext"),),
}
"""The columns that hold ciphertexts, by their reader."""


def rotate(reader: Reader) -> tuple[int, int]:
    """Encrypt every secret that was not made with the present key. Returns how many, and how many cannot be decrypted.

    Each batch is a transaction, so that an interruption loses nothing. Raises Conflict without a public key, and ArchiveAway.
    """
    if not getattr(settings(), f"{reader}_public_key"):
        raise Conflict(f"ASSENT_{reader.upper()}_PUBLIC_KEY is not set: there is no key to encrypt with.")
    with transaction(role="system") as db:
        workspaces = [workspace_id for (workspace_id,) in db.rows("SELECT id FROM workspace ORDER BY id")]
    rotated = failed = 0
    for workspace_id in workspaces:
        if reader == "archive":
            outcomes = [_copied(workspace_id, part_id) for part_id in _parts(workspace_id)]
            rotated, failed = rotated + outcomes.count(True), failed + outcomes.count(False)
        for table, column in COLUMNS.get(reader, ()):
            after: str | None = ""
            while after is not None:
                after, batch_done, batch_failed = _batch(workspace_id, reader, table, column, after)
                rotated, failed = rotated + batch_done, failed + batch_failed
    return rotated, failed


def _batch(workspace_id: str, reader: Reader, table: type[Any], column: str, after: str) -> tuple[str | None, int, int]:
    """Encrypt the secrets of the next rows behind the id `after`. Returns the last id, None at the end, and the counts."""
    these = f"WHERE id > %(after)s AND {column} <> '' ORDER BY id LIMIT %(most)s FOR NO KEY UPDATE"
    rotated = failed = 0
    with transaction(workspace_id) as db:
        rows = db.find(table, these, after=after, most=BATCH)
        for row in rows:
            ciphertext = getattr(row, column)
            if encryption.is_current(reader, ciphertext):
                continue
            try:
                text = encryption.decrypt(reader, ciphertext, row.id)
            except encryption.Undecryptable:
                failed += 1
                continue
            setattr(row, column, encryption.encrypt(reader, text, row.id))
            rotated += 1
    return (rows[-1].id if len(rows) == BATCH else None), rotated, failed


def _parts(workspace_id: str) -> list[str]:
    """Return the ids of the parts that are kept now: a copy needs no copy."""
    with transaction(workspace_id) as db:
        return [part_id for (part_id,) in db.rows("SELECT id FROM archive_part WHERE status = 'kept' ORDER BY id")]


def _copied(workspace_id: str, part_id: str) -> bool | None:
    """Let a copy take the place of a part. None if the part has the present key or is gone; False if it cannot be read."""
    with transaction(workspace_id) as db:
        part = db.get(ArchivePart, part_id)
        now = clock.now(db)
    if part is None or part.status != "kept":
        return None
    same = ("workspace_id", "session_id", "first_seq", "last_seq", "after", "until", "rows", "stored_in")
    copy = ArchivePart(
        id=ids.new("part"), created_at=now, due_at=now + WRITING, status="writing", **{name: getattr(part, name) for name in same}
    )
    content = contents.with_present_key(part, copy)
    if not isinstance(content, bytes):
        return False if isinstance(content, Fault) else None
    with transaction(workspace_id) as db:
        db.insert(copy)
    contents.store_content(copy, content)
    try:
        _take_place(part, copy, content)
    except (Stale, NotFound):
        return None  # the part was erased: a sweep removes the copy
    return True


def _take_place(part: ArchivePart, copy: ArchivePart, content: bytes) -> None:
    """Keep the copy in the place of the part, which goes once nobody reads it any more. Raises Stale, NotFound."""
    with transaction(part.workspace_id) as db:
        locked = lock_alone(db, part.session_id, system("rotation", part.workspace_id))
        old, new = db.get(ArchivePart, part.id), db.get(ArchivePart, copy.id)
        if old is None or new is None or (old.status, new.status) != ("kept", "writing"):
            raise Stale("the part is gone")
        db.move(new, "kept", due_at=None, size=len(content), sha256=contents.hash_of(content))
        db.move(old, "gone", due_at=locked.now + _READ_FOR)


_READ_FOR = timedelta(hours=1)
"""Longer than anybody reads a part whose row they have read."""
