"""All rows of a workspace as texts, to compare with earlier rows or, masked, with the rows of another workspace."""

import re

from models.database.transactions import transaction
from models.schema import TABLES

_EACH = "SELECT '{name} ' || (to_jsonb(t) - 'hint' - 'last_used_at' - 'salt')::text FROM {name} t"
_OURS = [table.__tablename__ for table in TABLES if hasattr(table, "workspace_id")]
_ROWS = " UNION ALL ".join(_EACH.format(name=name) for name in _OURS)
"""All but a key's `hint` and a text's `salt`, which are random, and a key's last use, which is not an effect of a request."""

_ID = re.compile(r"\b([a-z]+)_[0-9A-Z]{26}\b")
_SHA256 = re.compile(r"(?:\b|(?<=\\x))[0-9a-f]{64}\b")
_SECRET = re.compile(
    r'"(key|signing_secret|url)":(null|"(sk-assent-\w+|whsec_[\w+/=]+|http://localhost:8000/sign-in/link/[\w-]+)")'
)
"""The secrets of keys, endpoints and invitations, which are shown once."""
_CIPHERTEXT = re.compile(r'"[0-9a-f]{16}\.[\w+/]+=*"')
_WHSEC = re.compile(r"whsec_[\w+/=]+")
_HINT = re.compile(r"sk-assent-\.\.\.\w{4}")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_DURATION = re.compile(r'((?:active|duration)_seconds\\?": ?)[\d.e-]+')


def rows(workspace_id: str) -> list[str]:
    """Every row: its table's name, and its columns as JSON."""
    with transaction(workspace_id) as db:
        return sorted(row for (row,) in db.rows(_ROWS))


def masked(text: str) -> str:
    """The text without ids, times, hashes and secrets, which differ between two runs."""
    text = _WHSEC.sub("whsec", _HINT.sub("HINT", _SECRET.sub(r'"\1":SECRET', text)))
    text = _DURATION.sub(r"\1SECONDS", _CIPHERTEXT.sub("CIPHERTEXT", text))
    return _TIME.sub("TIME", _SHA256.sub("SHA256", _ID.sub(r"\1_ID", text)))
