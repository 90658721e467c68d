"""What every kind of approval has to say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from models.errors import Invalid
from models.pure.text import words
from models.session.approval.decision import Decision

Requests = Mapping[str, Any]
"""The tool's questions: `Approval.questions`, or nothing."""


@dataclass(frozen=True)
class Kind:
    """What holds for all approvals of a kind. The defaults are those of a call that waits to run."""

    name: str
    check: Callable[[Decision, Requests], None]
    """Raises Invalid for a decision that does not fit."""
    asks_to_run: bool = False
    """True if a call waits to begin. Then settings say which options people have, also by chat words, and an allow can create a
    grant."""
    takes_edits: bool = False
    """True if a person may change the input."""
    is_amount: bool = False
    """True if the input is an amount of money, as `models.pure.pricing.money.monetary` returns it."""
    is_confirmed: bool = True
    """True if clients are told of the decision by the event `user.tool_confirmation`."""
    lets_run: Callable[[str, Mapping[str, Any]], bool] = lambda _status, _decision: False
    """True if an approval with this status and this decision lets its call run."""
    silence: tuple[str, Callable[[float], str]] = ("expired", words.expired)
    """The deadline's effect: the call's status, and the model's text by the seconds that people had."""
    interrupted: Callable[[], str] = words.cancelled
    """The model's text if the run ends before the decision."""
    denied: Callable[[str | None], str] | None = None
    """The model's text for a denial, by the person's message. None: that of a denied call."""
    tag: str = ""
    """Two words for a line of a list. Empty for calls that wait to run."""
    group: str = ""
    """The heading of such approvals in a list. Empty for calls that wait to run."""
    group_rank: int = 9
    """The place of that group among those of the other kinds: the gravest first."""
    glyph: str = ""
    """The name of the glyph of such approvals. Empty: that of the tool."""
    warning: str = ""
    """What people must know before they read the question, as sentences."""
    headline: str = ""
    """The question, with `{agent}` and `{tool}`. Empty: the approval's prompt says it."""
    consequences: tuple[tuple[str, str], ...] = (
        ("Allow once", "The call runs once, with exactly this input."),
        ("Deny", "The call does not run. The agent is told, with your reason, and goes on."),
    )
    """What follows each answer: the answer, and a sentence."""
    afterwards: str = ""
    """The deadline's effect, as a sentence. Empty: `on_timeout` says it."""
    why_no_click: str = ""
    """Why a click on allow or deny does not decide it, as a sentence. Empty if one click is enough."""

    @property
    def sql(self) -> str:
        """An SQL condition: the approval is of this kind."""
        return f"kind = '{self.name}'"


def refuse_answers(decision: Decision) -> None:
    """Raise Invalid for answers to a tool's questions."""
    if decision.answers is not None:
        raise Invalid(
            "answers", "is for a call that asks something; this one only wants to run: decide it by result allow or deny."
        )


def refuse_outcome(decision: Decision) -> None:
    """Raise Invalid for the outcome of a call that began."""
    if decision.outcome is not None:
        raise Invalid("outcome", "is for a call whose outcome is unknown; this one has not run: decide it by result allow or deny.")
