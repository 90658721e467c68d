"""Keys of model providers that a workspace brings. They take precedence over the operator's, for this workspace alone.

A key is stored encrypted, and nobody is shown it again: any process can store one, and only the turns can decrypt it.
"""

from datetime import datetime

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.encryption import decrypt, encrypt
from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base
from models.errors import NotFound


class ProviderKey(Base):
    """The key of one provider in one workspace."""

    __tablename__ = "provider_key"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    provider: Mapped[str]
    """The name of an entry of the registry."""
    ciphertext: Mapped[str]
    """The key, as `models.database.encryption` encrypts it for the turns."""
    hint: Mapped[str]
    """The key's last four characters, to tell keys apart."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    created_by: Mapped[str]

    __table_args__ = (sa.UniqueConstraint("workspace_id", "provider"),)

    @classmethod
    def store(cls, db: Db, by: Principal, provider: str, key: str) -> "ProviderKey":
        """Store a provider's key in the place of the former one. Raises Conflict if this process has no public key."""
        key_id = ids.new("pkey")
        row = cls(
            id=key_id,
            workspace_id=by.workspace_id,
            provider=provider,
            ciphertext=encrypt("turns", key, key_id),
            hint=key[-4:] if len(key) >= 16 else "",
            created_at=clock.now(db),
            created_by=str(by),
        )
        db.write(_STORE, **{name: getattr(row, name) for name in _COLUMNS})
        acts.record(db, by, "provider_key.stored", row.id, {"provider": provider})
        return row

    @classmethod
    def remove(cls, db: Db, by: Principal, key_id: str) -> None:
        """Delete a key. Raises NotFound."""
        row = db.get(cls, key_id, lock=True)
        if row is None:
            raise NotFound("provider key", key_id)
        db.delete(row)
        acts.record(db, by, "provider_key.deleted", row.id, {"provider": row.provider})

    def decrypted(self) -> str:
        """Return the key. Raises Undecryptable in a process without the private key."""
        return decrypt("turns", self.ciphertext, self.id)


def of_workspace() -> Query[ProviderKey]:
    """Return the query of the transaction's workspace's keys, which can share a round trip."""
    return select(ProviderKey, "ORDER BY provider")


_COLUMNS = tuple(ProviderKey.__table__.columns.keys())
_STORE = """
    INSERT INTO provider_key (id, workspace_id, provider, ciphertext, hint, created_at, created_by)
    VALUES (%(id)s, %(workspace_id)s, %(provider)s, %(ciphertext)s, %(hint)s, %(created_at)s, %(created_by)s)
    ON CONFLICT (workspace_id, provider) DO UPDATE SET id = excluded.id, ciphertext = excluded.ciphertext, hint = excluded.hint,
        created_at = excluded.created_at, created_by = excluded.created_by
"""
"""A new id for a new key: the ciphertext is bound to it."""
