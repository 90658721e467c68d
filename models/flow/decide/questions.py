"""People's answers to a tool that asks a question before it goes on."""

from dataclasses import replace

from models.errors import Invalid
from models.pure.json.fitting import misfit
from models.session.approval.decision import Decision
from models.session.approval.row import Approval


def named(approval: Approval, decision: Decision) -> Decision:
    """Return the decision. An answer without a key gets the key of the only request. Raises Invalid for several requests."""
    requests = approval.questions or {}
    if decision.answers is None or "" not in decision.answers or approval.kind != "question":
        return decision
    if len(requests) != 1:
        raise Invalid("answer", f"is for one request; asked are {', '.join(sorted(requests))}: send answers.")
    return replace(decision, answers=dict.fromkeys(requests, decision.answers[""]))


def check_answers(approval: Approval, decision: Decision) -> None:
    """Raise Invalid unless an allowed question has an answer to each request, and each form fits its schema."""
    for field in ("updated_input", "respond"):
        if getattr(decision, field):
            raise Invalid(field, "is for a call that has not begun; this one asks something: send answers.")
    if decision.scope != "once":
        raise Invalid("scope", "is for a call that has not begun; this one asks something: send once.")
    if decision.result != "allow":
        return
    requests, answers = approval.questions or {}, decision.answers or {}
    for key in sorted(requests.keys() | answers.keys()):
        if key not in requests:
            raise Invalid(f"answers.{key}", f"is not asked; asked are {', '.join(sorted(requests))}.")
        if key not in answers:
            raise Invalid(f"answers.{key}", "is missing: send its action, accept (with the content), decline or cancel.")
        schema = requests[key].get("schema")
        accepted = answers[key].get("action") == "accept"
        if accepted and schema is not None and (fault := misfit(schema, answers[key].get("content") or {})):
            raise Invalid(f"answers.{key}.content", f"does not fit the form. {fault}")
