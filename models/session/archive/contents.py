"""Contents of parts: rows as lines of JSON, compressed, then encrypted for `archive`. Never read in a transaction."""

import hashlib
import logging
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.database import encryption
from models.database.encryption import Undecryptable
from models.database.transactions import transaction
from models.pure.json.codec import decode
from models.session.archive import files
from models.session.archive.part import ArchiveContent, ArchivePart
from models.settings import settings

log = logging.getLogger(__name__)

MOST_CACHED = 16_000_000
"""Bytes of decrypted contents that a process keeps, for the next page of a list and the next turn of a run."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a part's content. The sentence names the part."""

    sentence: str


@dataclass(frozen=True)
class Contents:
    """The rows of a part by table, each as `Table.of_json` reads it."""

    rows: dict[str, list[dict[str, Any]]]

    def of(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table."""
        return self.rows.get(table, [])


def encoded(part: ArchivePart, lines: Sequence[str]) -> bytes:
    """Return the content of a part. Each line is `{"table": name, "row": {...}}`."""
    return encryption.encrypt_bytes("archive", zlib.compress("\n".join(lines).encode(), 9), part.id)


def hash_of(content: bytes) -> str:
    """Return the hash of a content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def store_content(part: ArchivePart, content: bytes) -> None:
    """Store the content, wholly. Raises ArchiveAway."""
    if part.stored_in == "files":
        files.put(part.key, content)
        return
    with transaction(part.workspace_id) as db:
        db.insert(ArchiveContent(part_id=part.id, workspace_id=part.workspace_id, content=content))


def remove(part: ArchivePart) -> None:
    """Remove the content. Idempotent. Raises ArchiveAway."""
    _cache.pop(part.id, None)
    if part.stored_in == "files":
        files.remove(part.key)
        return
    with transaction(part.workspace_id) as db:
        db.write("DELETE FROM archive_content WHERE part_id = %(id)s", id=part.id)


def check(part: ArchivePart) -> None:
    """Read the hash of a kept part's content. The part's row says what is wrong with it. Raises ArchiveAway."""
    fault = _fault_of(part, _bytes_of(part))
    _note(part, fault.sentence if fault else None)


def read(part: ArchivePart) -> Contents | Fault:
    """Return the content of a kept part, or what is wrong with it, which the part's row then says, too. Raises ArchiveAway."""
    plain = _cache.get(part.id)
    if plain is None:
        content = _bytes_of(part)
        plain_or_fault = _fault_of(part, content) or _plain(part, content or b"")
        _note(part, plain_or_fault.sentence if isinstance(plain_or_fault, Fault) else None)
        if isinstance(plain_or_fault, Fault):
            return plain_or_fault
        plain = plain_or_fault
        _keep(part.id, plain)
    else:
        _cache.move_to_end(part.id)
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in plain.split(b"\n"):
        each = decode(line)
        rows.setdefault(each["table"], []).append(each["row"])
    return Contents(rows)


def with_present_key(part: ArchivePart, copy: ArchivePart) -> bytes | Fault | None:
    """Return the content of a kept part, encrypted anew for its copy; None if it has the present key.

    Raises ArchiveAway; Conflict without a public key.
    """
    content = _bytes_of(part)
    if content and encryption.is_current("archive", content):
        return None
    if fault := _fault_of(part, content):
        return fault
    try:
        plain = encryption.decrypt_bytes("archive", content or b"", part.id)
    except Undecryptable as error:
        return Fault(f"{part.words} cannot be decrypted: {error}")
    return encryption.encrypt_bytes("archive", plain, copy.id)


def forget() -> None:
    """Have this process forget all contents that it has read."""
    _cache.clear()


_cache: OrderedDict[str, bytes] = OrderedDict()


def _keep(part_id: str, plain: bytes) -> None:
    _cache[part_id] = plain
    while sum(map(len, _cache.values())) > MOST_CACHED:
        _cache.popitem(last=False)


def _bytes_of(part: ArchivePart) -> bytes | None:
    if part.stored_in == "files":
        return files.get(part.key)
    with transaction(part.workspace_id) as db:
        row = db.get(ArchiveContent, part.id)
        return row.content if row else None


def _fault_of(part: ArchivePart, content: bytes | None) -> Fault | None:
    if content is None:
        unset = part.stored_in == "files" and not settings().archive_url
        return Fault(f"{part.words} is in a file, and ASSENT_ARCHIVE_URL is not set." if unset else f"{part.words} is missing.")
    if hash_of(content) != part.sha256:
        return Fault(f"{part.words} was altered: its hash is not the one that was stored.")
    return None


def _plain(part: ArchivePart, content: bytes) -> bytes | Fault:
    try:
        return zlib.decompress(encryption.decrypt_bytes("archive", content, part.id))
    except Undecryptable as error:
        return Fault(f"{part.words} cannot be decrypted: {error}")


def _note(part: ArchivePart, fault: str | None) -> None:
    """Have the part's row say what is wrong with it, for the doctor, or that nothing is."""
    if fault != part.fault:
        log.error("%s", fault or f"part {part.id} of the archive can be read again")
        with transaction(part.workspace_id) as db:
            db.write(_NOTE, id=part.id, fault=fault)


_NOTE = "UPDATE archive_part SET fault = %(fault)s WHERE id = %(id)s AND status = 'kept'"
