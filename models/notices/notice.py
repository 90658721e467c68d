"""Notices: what a notification says, whatever the channel. Every text has its secrets masked."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from models.notices.slack_button import Result
from models.outbox import approval_change

Stage = approval_change.Stage | Literal["test", "delegation", "flood"]
"""What happened: to the approval, or without one (`ALONE`)."""
ALONE = frozenset({"test", "delegation", "flood"})
"""Stages of notices without an approval: a test, a delegation that waits for the person who is notified, and a flood."""


@dataclass(frozen=True)
class Notice:
    """One approval at one stage, for one person or for a room with several people."""

    approval_id: str
    workspace_id: str
    stage: Stage
    title: str
    """One line, such as `Run shell command: rm -rf build`. No line ends."""
    sentence: str
    """The question as a sentence, such as `Support bot wants to run a shell command`."""
    evidence: str = ""
    """The command, the change of a file as a diff, or the input as JSON; several lines, at most
    `models.notices.texts.MOST_EVIDENCE` characters."""
    agent: str = ""
    """The agent that asks, behind those above it: `Coordinator › Researcher`."""
    session: str = ""
    """The session's title, in one line. Like the two texts below only in mail, and only while the approval waits."""
    last_words: str = ""
    """What the agent said last, in several lines, at most `models.briefing.reasons.MOST_SHOWN` characters. Only for one person."""
    why: str = ""
    """`Asked because bash asks every time unless a rule says otherwise.`"""
    deadline: datetime | None = None
    """When the approval expires; None once it is decided."""
    afterwards: str = ""
    """What the deadline does, such as `If nobody decides, the call is denied.`"""
    outcome: str = ""
    """At stage `decided`: `Allowed by Anna`. Empty while the approval waits."""
    came_of: str = ""
    """What came of the call that was allowed, without its output: `The call is done`. Empty if that is not known."""
    mark: str = ""
    """The glyph of the outcome, as a character."""
    url: str = ""
    """The page on which the approval is decided."""
    code: str | None = None
    """Six digits that a person types on that page; None if there are none."""
    buttons: tuple[Result, ...] = ()
    """The decisions for which the message may have buttons. None unless the approval waits and asks one person for yes or no;
    `allow` only if `evidence` is all that would run."""
    input_sha256: str = ""
    """The hash of the input that would run: a button sends it back as `expected_input_sha256`."""

    @property
    def ending(self) -> str:
        """The outcome behind its glyph: `✓ Allowed by Anna`. Empty while the approval waits."""
        return f"{self.mark} {self.outcome}" if self.mark else self.outcome
