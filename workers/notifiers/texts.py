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
"""Stands before each line of evidence."""


def subject(notice: Notice) -> str:
    """Return the notice's subject, in one line."""
    if notice.stage == "decided":
        return f"{notice.outcome}: {notice.title}"
    return f"{_BEGINNINGS[notice.stage]}{notice.title}"


def body(notice: Notice, most_evidence: int = 3000) -> str:
    """Return the notice as text of several lines. Longer evidence is cut.

    The link and the code stand first, and each line of evidence has a bar: no evidence looks like either.
    """
    if notice.stage == "decided":
        ending = ". ".join(filter(None, (notice.ending, notice.came_of)))
        return f"{notice.url}\n\n{notice.sentence}\n\n{ending}."
    if notice.stage in ALONE:
        return f"{notice.url}\n\n{notice.sentence}."
    evidence = notice.evidence
    if len(evidence) > most_evidence:
        evidence = f"{evidence[:most_evidence]}… ({len(evidence) - most_evidence} more characters)"
    barred = "\n".join(f"{_BAR}{line}" for line in evidence.splitlines())
    return "\n\n".join(part for part in (where(notice), f"{notice.sentence}.", barred, deadline(notice)) if part)


def deadline(notice: Notice) -> str:
    """Return the agent, the deadline, and the effect of the deadline."""
    agent = f"Agent: {notice.agent}" if notice.agent else ""
    until = f"Until {notice.deadline:%Y-%m-%d %H:%M} UTC. {notice.afterwards}" if notice.deadline else notice.afterwards
    return "\n".join(part for part in (agent, until) if part)


def where(notice: Notice) -> str:
    """Return the link, and the code for its page."""
    link = f"Decide here: {notice.url}"
    return f"{link}\nThe code for that page: {notice.code}" if notice.code else link
