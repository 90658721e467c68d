"""Reasons for a denial that people choose with one click. A workspace has its own, or these."""

from collections.abc import Sequence

from models.database.rows import Db

DEFAULT = (
    "Not now. Go on without it, or ask again later.",
    "This does more than it needs to. Do a smaller part of it.",
    "Wrong place. Check the path, the branch or the address.",
    "Say first why you need this.",
)
MOST = 9
"""Most reasons of a workspace: a key from 1 to 9 chooses one."""
LONGEST = 200
"""Most characters of a reason."""


def of(db: Db) -> Sequence[str]:
    """Return the reasons of the transaction's workspace."""
    own_reasons: list[str] | None = db.value("SELECT denial_reasons FROM workspace WHERE id = current_setting('assent.workspace')")
    return DEFAULT if own_reasons is None else own_reasons
