"""What does the tool need to know before it goes on?"""

from models.errors import Invalid
from models.pure.json.fitting import misfit
from models.pure.text import words
from models.session.approval.decision import Decision
from models.session.approval.kinds.kind import Kind, Requests, refuse_outcome


def check(decision: Decision, requests: Requests) -> None:
    """Raise Invalid unless an allowed question has an answer to each request, and each form fits its schema."""
    for field in ("updated_input", "respond"):
        if getattr(decision, field):
            raise Invalid(field, "is for a call that has not begun; this one asks something: send answers.")
    if decision.scope != "once":
        raise Invalid("scope", "is for a call that has not begun; this one asks something: send once.")
    if decision.result == "allow":
        _check_answers(decision, requests)
    refuse_outcome(decision)


def _check_answers(decision: Decision, requests: Requests) -> None:
    answers = decision.answers or {}
    for key in sorted(requests.keys() | answers.keys()):
        if key not in requests:
            raise Invalid(f"answers.{key}", f"is not asked; asked are {', '.join(sorted(requests))}.")
        if key not in answers:
            raise Invalid(f"answers.{key}", "is missing: send its action, accept (with the content), decline or cancel.")
        schema = requests[key].get("schema")
        accepted = answers[key].get("action") == "accept"
        if accepted and schema is not None and (fault := misfit(schema, answers[key].get("content") or {})):
            raise Invalid(f"answers.{key}.content", f"does not fit the form. {fault}")


KIND = Kind(
    "question",
    check,
    silence=("expired", words.question_expired),
    interrupted=words.cancelled_asking,
    denied=words.question_denied,
    tag="asks something",
    group="Questions",
    group_rank=2,
    glyph="question",
    headline="{tool} asks something before it goes on",
    consequences=(
        ("Answer", "The tool goes on with what you write."),
        ("Decline", "The tool is told that you do not answer, and goes on as it can."),
        ("Deny", "The tool does not go on, and the agent is told."),
    ),
    afterwards="If nobody decides, the call is given up.",
    why_no_click="The tool asks for answers.",
)
