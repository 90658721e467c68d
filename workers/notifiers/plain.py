"""Texts of agents and people for services that give some characters a meaning.

Nothing in such a text mentions anybody, hides where a link leads, or changes what a reader sees of a call.
"""

import re
from dataclasses import replace
from typing import Any

from models.notices.notice import Notice

_OPENING = re.compile(r"[@<]|\](?=[(\[:])")
"""Begins a mention, a tag, or the target of a link, in the markup of every service that has them."""
_NOTHING = "\N{ZERO WIDTH SPACE}"
_OF_OTHERS = ("title", "sentence", "evidence", "agent", "session", "last_words", "why", "outcome")


def plain(notice: Notice, special: str) -> Notice:
    """Return the notice with no markup in the texts of others. `special`: characters that the service shows after a backslash."""
    harmless: dict[str, Any] = {name: _plain(getattr(notice, name), special) for name in _OF_OTHERS}
    return replace(notice, **harmless)


def _plain(text: str, special: str) -> str:
    harmless = _OPENING.sub(rf"\g<0>{_NOTHING}", text)
    return re.sub(f"[{re.escape(special)}]", r"\\\g<0>", harmless) if special else harmless
