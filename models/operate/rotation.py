"""Rotation: encrypts the secrets in rows anew, with the present public key of their reader."""

from typing import Any

from models.database import encryption
from models.database.encryption import Reader
from models.database.transactions import transaction
from models.errors import Conflict
from models.notices.channel import Channel
from models.outbox.endpoint import Endpoint
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

    Each batch is a transaction, so that an interruption loses nothing. Raises Conflict without a public key.
    """
    if not getattr(settings(), f"{reader}_public_key"):
        raise Conflict(f"ASSENT_{reader.upper()}_PUBLIC_KEY is not set: there is no key to encrypt with.")
    with transaction(role="system") as db:
        workspaces = [workspace_id for (workspace_id,) in db.rows("SELECT id FROM workspace ORDER BY id")]
    rotated = failed = 0
    for workspace_id in workspaces:
        for table, column in COLUMNS[reader]:
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
