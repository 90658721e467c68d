"""Chat words: words that a person may type instead of pressing a button, in sessions that enable them."""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Word:
    """A decision that a message spells."""

    result: Literal["allow", "deny"]
    all: bool = False
    """True if the decision covers every pending approval, and later calls of the same tools."""
    reason: str | None = None
    """With `deny`: the reason that the model reads."""


_ALLOW = {"approve", "approved", "yes", "y", "allow"}
_ALLOW_ALL = {"approve all", "yes to all", "allow all"}
_DENY = {"reject", "rejected", "no", "n", "deny", "reject all", "deny all", "no to all"}
_REASON = re.compile(r"(?:reject|deny|no)\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)


def meaning(text: str) -> Word | None:
    """Return the decision that a message spells, or None for any other message. Only a whole message counts, not its beginning."""
    message = text.strip()
    plain = re.sub(r"\s+", " ", message.rstrip(".! ")).lower()
    if plain in _ALLOW_ALL:
        return Word("allow", all=True)
    if plain in _ALLOW:
        return Word("allow")
    if plain in _DENY:
        return Word("deny")
    reason = _REASON.fullmatch(message)
    return Word("deny", reason=reason[1].strip()) if reason else None
