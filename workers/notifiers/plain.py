"""Texts of agents and people for services that give some characters a meaning.

Nothing in such a text mentions anybody, hides where a link leads, or changes what a reader sees of a call.
"""

import re
from dataclasses import replace

from models.notices.notice import Notice

_OPENING = re.compile(r"[@<]|\](?=[(\[:])")
"""Begins a mention, a tag, or the target of a link, in the markup of every service that has them."""
_NOTHING = "\N{ZERO WIDTH SPACE}"


def plain(notice: Notice, special: str) -> Notice:
    """Return the notice with no markup in the texts of others. `special`: characters that the service shows after a backslash."""
    title, sentence, evidence, agent, outcome = (
        _plain(text, special) for text in (notice.title, notice.sentence, notice.evidence, notice.agent, notice.outcome)
    )
    return replace(notice, title=title, sentence=sentence, evidence=evidence, agent=agent, outcome=outcome)


def _plain(text: str, special: str) -> str:
    harmless = _OPENING.sub(rf"\g<0>{_NOTHING}", text)
    return re.sub(f"[{re.escape(special)}]", r"\\\g<0>", harmless) if special else harmless
