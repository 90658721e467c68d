"""Erasable texts of the audit: names, deny messages, rules, patterns, and digests of answers that could be guessed.

The act holds a salted digest of each text, under `details.texts`. Text and salt are in a row of their own. Erasing deletes that
row. Without the salt nobody can guess the text, and the chain stays valid. Another act records the erasure and its principal.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base, Hex

ERASED = "audit.erased"
SALT_BYTES = 16
ACTS = 1000
"""Most acts whose texts one transaction erases."""


class Text(str):
    """An erasable value in an act's details. `about`: the id of the person whom it identifies, with whom it is erased."""

    __slots__ = ("about",)
    about: str | None

    def __new__(cls, text: str, *, about: str | None = None) -> "Text":
        """Return the text, about a person or about nobody."""
        self = super().__new__(cls, text)
        self.about = about
        return self


class AuditText(Base):
    """One text of one act."""

    __tablename__ = "audit_text"

    chain: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    """The detail's name, such as `deny_message`."""
    workspace_id: Mapped[str]
    salt: Mapped[str] = mapped_column(Hex)
    """16 random bytes, in hex."""
    text: Mapped[str]
    about: Mapped[str | None]
    """The id of the person whom the text identifies: an address, the name of a passkey. None for other texts, and older ones."""

    __table_args__ = (sa.Index("audit_text_about", "about", postgresql_where=sa.text("about IS NOT NULL")),)


@dataclass(frozen=True)
class Erasure:
    """The texts that one transaction erased."""

    texts: int
    acts: dict[str, list[int]]
    """By chain."""
    has_more: bool
    on_hold: int = 0
    """Matching texts that stay, since their session is on hold."""


def digest(salt: str, text: str) -> str:
    """Return the digest of a text that the chain holds: HMAC-SHA256 under the salt, in hex."""
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()


def split(chain: str, seq: int, workspace_id: str, details: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the details with digests in place of texts, as the chain holds them, and the rows of the texts."""
    texts = {name: value for name, value in details.items() if isinstance(value, Text)}
    if not texts:
        return details, []
    act = {"chain": chain, "seq": seq, "workspace_id": workspace_id}
    salts = {name: secrets.token_hex(SALT_BYTES) for name in texts}
    chained = {name: value for name, value in details.items() if name not in texts}
    chained["texts"] = {name: digest(salts[name], text) for name, text in texts.items()}
    return chained, [
        act | {"name": name, "salt": salts[name], "text": str(text), "about": text.about} for name, text in texts.items()
    ]


def of(db: Db, acts: list[tuple[str, int]]) -> dict[tuple[str, int], dict[str, str]]:
    """Return the texts of these acts that are not erased, by chain and seq, then by name."""
    texts: dict[tuple[str, int], dict[str, str]] = {}
    for row in db.find(AuditText, f"WHERE {_OF_ACTS}", **_of(acts)) if acts else ():
        texts.setdefault((row.chain, row.seq), {})[row.name] = row.text
    return texts


def remove(db: Db, chain: str | None, seq: int | None, principal: str | None, on_hold_sql: str) -> Erasure:
    """Delete the texts of at most `ACTS` acts. Selects them by chain, by one act in it, by principal, or by both.

    Texts stay for which `on_hold_sql` is true.
    """
    where = {"chain": "chain = %(chain)s", "seq": "seq = %(seq)s", "by": _BY}
    values = {name: value for name, value in {"chain": chain, "seq": seq, "by": principal}.items() if value is not None}
    conditions = " AND ".join(where[name] for name in values)
    select = (
        f"SELECT DISTINCT chain, seq FROM audit_text WHERE {conditions} AND NOT {on_hold_sql} ORDER BY chain, seq LIMIT %(limit)s"  # noqa: S608
    )
    acts = db.rows(select, **values, limit=ACTS + 1)
    delete = f"DELETE FROM audit_text WHERE {_OF_ACTS} RETURNING chain, seq"  # noqa: S608 - names of our own
    rows = db.rows(delete, **_of(acts[:ACTS])) if acts else []
    on_hold = db.value(f"SELECT count(*) FROM audit_text WHERE {conditions} AND {on_hold_sql}", **values)  # noqa: S608 - names of our own
    return Erasure(len(rows), _by_chain(rows), len(acts) > ACTS, on_hold)


def remove_where(db: Db, condition: str, on_hold: str, **values: Any) -> Erasure:
    """Delete at most `ACTS` texts that meet a condition in SQL. Other texts of the same acts stay, and so do those on hold."""
    some = f"SELECT chain, seq, name FROM audit_text WHERE {condition} AND NOT {on_hold} LIMIT %(limit)s"  # noqa: S608 - names of our own
    delete = f"DELETE FROM audit_text WHERE (chain, seq, name) IN ({some}) RETURNING chain, seq"  # noqa: S608 - names of our own
    rows = db.rows(delete, **values, limit=ACTS)
    return Erasure(len(rows), _by_chain(rows), len(rows) == ACTS)


def _by_chain(acts: Iterable[Sequence[Any]]) -> dict[str, list[int]]:
    by_chain: dict[str, set[int]] = {}
    for chain, seq in acts:
        by_chain.setdefault(chain, set()).add(seq)
    return {chain: sorted(seqs) for chain, seqs in by_chain.items()}


def _of(acts: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the values of `_OF_ACTS` for these chains and numbers."""
    return {"chains": [chain for chain, _ in acts], "seqs": [seq for _, seq in acts]}


_OF_ACTS = "(chain, seq) IN (SELECT * FROM unnest(CAST(%(chains)s AS text[]), CAST(%(seqs)s AS bigint[])))"
_BY = """
    EXISTS (SELECT FROM audit WHERE audit.chain = audit_text.chain AND audit.seq = audit_text.seq AND audit.principal = %(by)s)
"""
