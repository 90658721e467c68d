"""What became of this call? It began, or may have after a restored backup, and nobody reported its end."""

from models.errors import Invalid
from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.kinds.kind import Kind, Requests, refuse_answers


def check(decision: Decision, _requests: Requests) -> None:
    """Raise Invalid unless the decision says what became of the call."""
    refuse_answers(decision)
    if decision.outcome is None and decision.result != "deny":
        raise Invalid(
            "result",
            "this call began and its outcome is unknown: decide its approval with outcome rerun, happened or give_up.",
        )
    if decision.outcome == "happened" and not decision.content:
        raise Invalid("result", "outcome happened needs the result, as text or as content blocks.")


KIND = Kind(
    "unknown_outcome",
    check,
    lets_run=lambda status, decision: status == "answered" and decision.get("outcome") == "rerun",
    silence=("done", lambda _seconds: words.outcome_unknown()),
    tag="outcome unknown",
    group="Unknown outcomes",
    group_rank=1,
    glyph="alert",
    warning="The call began, or may have begun. Nobody reported its end.",
    headline="{agent} called {tool}, and nobody knows whether the call took effect",
    consequences=(
        ("It took effect", "The agent gets what you write as the result, and goes on."),
        ("Run again", "The call runs once more. If it took effect before, it takes effect twice."),
        ("Give up", "The agent is told that nobody knows whether the call took effect."),
    ),
    afterwards="If nobody decides, the call is given up.",
    why_no_click="Nobody knows whether the call took effect.",
)
