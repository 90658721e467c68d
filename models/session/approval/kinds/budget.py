"""May the session spend more? Nothing runs, so clients are told of the budget alone."""

from decimal import Decimal

from models.errors import Invalid
from models.session.approval.decision import Decision
from models.session.approval.kinds.kind import Kind, Requests, refuse_answers, refuse_outcome

TOOL = "session.budget"
"""What people are asked for at a session's own budget. No tool can have this name."""


def spent_in_words(dollars: Decimal) -> str:
    """Return what the session has cost, as the prompt of a question about its budget says it."""
    return f"spent: ${dollars:.2f}"


def check(decision: Decision, _requests: Requests) -> None:
    """Raise Invalid for fields that only a tool's call can have."""
    if decision.respond:
        raise Invalid("respond", "is for a tool's call; this approval raises a budget: decide it by result allow or deny.")
    if decision.scope != "once":
        raise Invalid("scope", "is for a tool's call; this approval raises a budget: send once.")
    refuse_answers(decision)
    refuse_outcome(decision)


KIND = Kind(
    "budget",
    check,
    takes_edits=True,
    is_amount=True,
    is_confirmed=False,
    tag="budget",
    group="Budgets",
    group_rank=3,
    glyph="coin",
    consequences=(
        ("Allow", "The session may spend up to the new amount, and goes on."),
        ("Deny", "The session rests until somebody raises the budget or takes it away."),
    ),
    afterwards="If nobody decides, the session rests.",
)
