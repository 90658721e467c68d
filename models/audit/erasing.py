"""Erasing texts from the audit. An act records who erased which texts; what is on hold keeps them."""

from typing import Any

from models.audit import legal_hold
from models.audit.acts import record
from models.audit.principal import Principal
from models.audit.text import ERASED, Erasure, remove, remove_where
from models.database.rows import Db
from models.errors import Invalid, NotFound

_LOCK = "SELECT FROM workspace WHERE id = %(id)s FOR NO KEY UPDATE"
_HELD = legal_hold.held_sql("audit_text.workspace_id", "audit_text.chain")


def erase(db: Db, principal: Principal, *, chain: str | None = None, seq: int | None = None, by: str | None = None) -> Erasure:
    """Erase the texts of acts, and record the erasure as an act. Selects acts by chain, by one act in it, by principal, or by both.

    One call erases the texts of at most 1000 acts. Without a chain, those of sessions on hold stay: the result counts them. Raises
    Invalid if both `chain` and `by` are missing, or if `seq` comes without `chain`; NotFound for a chain without acts; Conflict if
    the workspace or the chain is on hold.
    """
    if chain is None and by is None:
        raise Invalid("chain", "name a chain or a principal: erased texts cannot be restored.")
    if chain is None and seq is not None:
        raise Invalid("seq", "is the number of an act in a chain: name the chain.")
    if chain is not None and not db.rows("SELECT FROM audit WHERE chain = %(chain)s LIMIT 1", chain=chain):
        raise NotFound("chain", chain)
    db.rows(_LOCK, id=principal.workspace_id)
    legal_hold.refuse(db, chain)
    erasure = remove(db, chain, seq, by, _HELD)
    if erasure.acts:
        record(db, principal, ERASED, principal.workspace_id, {"acts": erasure.acts, "texts_erased": erasure.texts})
    return erasure


def erase_where(db: Db, principal: Principal, condition: str, **values: Any) -> Erasure:
    """Erase at most 1000 texts that meet a condition in SQL, and record the erasure as an act. What is on hold stays."""
    db.rows(_LOCK, id=principal.workspace_id)
    erasure = remove_where(db, condition, _HELD, **values)
    if erasure.acts:
        record(db, principal, ERASED, principal.workspace_id, {"acts": erasure.acts, "texts_erased": erasure.texts})
    return erasure
