"""The buttons of a card, each with the decision that it stands for."""

from collections.abc import Callable
from typing import Any

from flask import request

from api.desk.card import card
from api.desk.rendering import fields
from api.desk.shell.forms import Misfilled, needed, text
from models.errors import Invalid
from models.pure.json.fitting import misfit
from models.session.approval.row import Approval


def _for_session(_approval: Approval) -> dict[str, Any]:
    more = {"include_sub_agents": True} if request.form.get("include_sub_agents") == "yes" else {}
    return {"result": "allow", "scope": "session", "match": request.form.get("match") or "tool", **more}


def _deny(_approval: Approval) -> dict[str, Any]:
    return {"result": "deny"} | _message()


def _end(_approval: Approval) -> dict[str, Any]:
    return {"result": "deny", "interrupt": True} | _message()


def _message() -> dict[str, Any]:
    message = request.form.get("reason") or text("deny_message")
    return {"deny_message": message} if message.strip() else {}


def _respond(_approval: Approval) -> dict[str, Any]:
    return {"result": "allow", "respond": needed("respond", "Write the result that the agent gets.")}


def _happened(_approval: Approval) -> dict[str, Any]:
    return {"outcome": "happened", "result": needed("content", "Write the result that the agent gets.")}


def _rerun(_approval: Approval) -> dict[str, Any]:
    if request.form.get("sure") != "yes":
        raise Invalid("", "Mark that the call is to run again, though it may have taken effect.")
    return {"outcome": "rerun"}


def _answer(approval: Approval) -> dict[str, Any]:
    """Return the decision with the replies to the tool's questions. Raises Misfilled, Invalid."""
    replies: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for i, question in enumerate(card.questions(approval)):
        if question.url:
            if request.form.get(f"q{i}.visited") != "yes":
                faults[f"q{i}"] = "Go there first and mark it, or decline."
            replies[question.key] = {"action": "accept"}
            continue
        form = fields.read(request.form, question.fields)
        faults |= form.faults
        replies[question.key] = {"action": "accept", "content": form.values}
        schema = (approval.questions or {})[question.key]["schema"]
        if not form.faults and (fault := misfit(schema, form.values)):
            raise Invalid("", fault)
    if faults:
        raise Misfilled(faults)
    return {"result": "allow", "answers": replies}


def _decline(approval: Approval) -> dict[str, Any]:
    return {"result": "allow", "answers": {key: {"action": "decline"} for key in approval.questions or {}}}


VERBS: dict[str, Callable[[Approval], dict[str, Any]]] = {
    "allow": lambda _approval: {"result": "allow"},
    "session": _for_session,
    "deny": _deny,
    "end": _end,
    "respond": _respond,
    "answer": _answer,
    "decline": _decline,
    "happened": _happened,
    "rerun": _rerun,
    "give_up": lambda _approval: {"outcome": "give_up"},
}
"""By the value of the button."""
