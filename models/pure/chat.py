"""Chat words: what a person may type instead of pressing a button, in sessions that turn them on."""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Word:
    """A decision in words."""

    result: Literal["allow", "deny"]
    all: bool = False
    """Of everything that waits, and of later calls of the same tools too."""
    reason: str | None = None
    """With deny: for the model."""


_ALLOW = {"approve", "approved", "yes", "y", "allow"}
_ALLOW_ALL = {"approve all", "yes to all", "allow all"}
_DENY = {"reject", "rejected", "no", "n", "deny", "reject all", "deny all", "no to all"}
_REASON = re.compile(r"(?:reject|deny|no)\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)


def meaning(text: str) -> Word | None:
    """The decision that a message is, or None if it is anything else: a sentence that only begins like one is a message."""
    said = text.strip()
    plain = re.sub(r"\s+", " ", said.rstrip(".! ")).lower()
    if plain in _ALLOW_ALL:
        return Word("allow", all=True)
    if plain in _ALLOW:
        return Word("allow")
    if plain in _DENY:
        return Word("deny")
    reason = _REASON.fullmatch(said)
    return Word("deny", reason=reason[1].strip()) if reason else None
