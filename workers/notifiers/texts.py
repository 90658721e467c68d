"""Notices as plain text, for all channels without their own layout."""

from models.notices.notice import ALONE, Notice

_BEGINNINGS = {
    "requested": "",
    "test": "",
    "delegation": "",
    "flood": "",
    "reminded": "Still waiting: ",
    "escalated": "Nobody has decided yet: ",
}
_BAR = "| "
"""Stands before each line of evidence and of the agent's words."""


def subject(notice: Notice) -> str:
    """Return the notice's subject, in one line."""
    if notice.stage == "decided":
        return f"{notice.outcome}: {notice.title}"
    return f"{_BEGINNINGS[notice.stage]}{notice.title}"


def body(notice: Notice, most_evidence: int = 3000) -> str:
    """Return the notice as text of several lines. Longer evidence is cut.

    The link and the code stand first, and each line of evidence and of the agent's words has a bar: none looks like either.
    """
    if notice.stage == "decided":
        ending = ". ".join(filter(None, (notice.ending, notice.came_of)))
        return f"{notice.url}\n\n{notice.sentence}\n\n{ending}."
    if notice.stage in ALONE:
        return f"{notice.url}\n\n{notice.sentence}."
    evidence = notice.evidence
    if len(evidence) > most_evidence:
        evidence = f"{evidence[:most_evidence]}… ({len(evidence) - most_evidence} more characters)"
    words = f"The agent says:\n{_barred(notice.last_words)}" if notice.last_words else ""
    parts = (where(notice), f"{notice.sentence}.", _barred(evidence), words, about(notice))
    return "\n\n".join(part for part in parts if part)


def _barred(text: str) -> str:
    return "\n".join(f"{_BAR}{line}" for line in text.splitlines())


def about(notice: Notice) -> str:
    """Return the agent, the session, why people are asked, the deadline and its effect, each in a line."""
    session = f"Session: {notice.session}" if notice.session else ""
    return "\n".join(part for part in (_agent(notice), session, notice.why, _until(notice)) if part)


def deadline(notice: Notice) -> str:
    """Return the agent, the deadline, and the effect of the deadline."""
    return "\n".join(part for part in (_agent(notice), _until(notice)) if part)


def _agent(notice: Notice) -> str:
    return f"Agent: {notice.agent}" if notice.agent else ""


def _until(notice: Notice) -> str:
    return f"Until {notice.deadline:%Y-%m-%d %H:%M} UTC. {notice.afterwards}" if notice.deadline else notice.afterwards


def where(notice: Notice) -> str:
    """Return the link, and the code for its page."""
    link = f"Decide here: {notice.url}"
    return f"{link}\nThe code for that page: {notice.code}" if notice.code else link
