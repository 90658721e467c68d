"""A text that changes with the workspace's approvals, so that open pages know when to read them again."""

from models.database.rows import Db

_MARK = """
    SELECT concat(
        (SELECT id FROM approval ORDER BY created_at DESC, id DESC LIMIT 1), ' ',
        (SELECT bit_xor(hashtextextended(id || expires_at, 0)) FROM (
            SELECT id, expires_at FROM approval WHERE status = 'pending' ORDER BY expires_at, id LIMIT 500
        ) next)
    )
"""


def approval_mark(db: Db) -> str:
    """Return a text that changes when an approval is added, or when one of the next 500 due is decided or gets another deadline."""
    return str(db.value(_MARK))
