"""May this call run?"""

from models.session.approval.decision import Decision
from models.session.approval.kinds.kind import Kind, Requests, refuse_answers, refuse_outcome


def check(decision: Decision, _requests: Requests) -> None:
    """Raise Invalid for a decision about something else than a call that waits."""
    refuse_answers(decision)
    refuse_outcome(decision)


KIND = Kind("tool_call", check, asks_to_run=True, takes_edits=True, lets_run=lambda status, _decision: status == "allowed")
