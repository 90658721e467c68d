"""Approvals as a client of OpenAI's format is asked for them: by a sentence, or by a call of a tool of the client's.

A sentence ends with the approval's id, and the id of a call names the approval and the hash of its input. By these ids both are
recognised when the client sends them back in its messages. `deciding` reads the decisions.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from api.chat import responses
from models.audit.principal import Principal
from models.database.rows import Db
from models.flow.carry_on.listing import by_words
from models.pure.naming import APPROVAL_TOOL
from models.pure.offer import Offer, Option
from models.pure.text.visible import visible
from models.pure.times import rfc3339
from models.session.approval.offers import offer_now
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.thread.row import Thread, own_id

How = Literal["text", "tools"]
"""`tools`: each approval that the client's key may decide is a call. `text`: each approval is a sentence."""
HOWS: tuple[How, ...] = ("text", "tools")

CALL_ID = re.compile(r"(appr_[0-9A-Za-z]{26})_([0-9a-f]{64})")
"""The id of a call: the approval, and the hash of the input that would run."""
_IN_ITS_PLACE: Option = "answer"
"""The option that no `tool` message can choose."""
_SENTENCE_END = re.compile(r" \((appr_[0-9A-Za-z]{26})\)")
_MOST_RECOGNISED = 1000
"""Most sentences that are recognised in one request."""


@dataclass(frozen=True)
class Asks:
    """The approvals that a session waits for, for one client."""

    sentences: list[str]
    calls: list[responses.ToolCall]


def asks(db: Db, principal: Principal, session: Session, how: How) -> Asks:
    """Return the approvals that a session waits for, oldest first, each as a sentence or as a call."""
    pending = Approval.pending(db, session.id)
    as_calls = [approval for approval in pending if how == "tools" and may_decide(principal, approval)]
    sentences = [sentence(db, approval) for approval in pending if approval not in as_calls]
    return Asks(sentences, [_call(db, approval, offer_now(db, session, approval)) for approval in as_calls])


def awaits(db: Db, principal: Principal, session: Session, how: How) -> bool:
    """True if `asks` has a call, so that the client has to decide."""
    return how == "tools" and any(may_decide(principal, approval) for approval in Approval.pending(db, session.id))


def may_decide(principal: Principal, approval: Approval) -> bool:
    """True if the principal alone can decide the approval by allowing or denying a call."""
    return by_words(approval) and "approvals" in principal.scopes


def sentence(db: Db, approval: Approval) -> str:
    """Return the sentence that asks people for the approval. It is one line, so that no prompt looks like two sentences.

    If a sub-agent asks, the sentence names the path to it.
    """
    asker = "" if approval.thread_id == own_id(approval.session_id) else f"{approval.path(db)}: "
    return f"Waiting for approval: {asker}{visible(approval.prompt)} ({approval.id})"


def _call(db: Db, approval: Approval, offer: Offer) -> responses.ToolCall:
    arguments = {
        "approval_id": approval.id,
        "agent": approval.path(db),
        "tool": approval.tool,
        "arguments": shown_input(approval, approval.runs),
        "message": approval.prompt,
        "options": [*(option for option in offer.options if option != _IN_ITS_PLACE), "deny"],
        "input_sha256": approval.runs,
        "expires_at": rfc3339(approval.expires_at),
    }
    function = responses.CalledFunction(name=APPROVAL_TOOL, arguments=json.dumps(arguments, ensure_ascii=False))
    return responses.ToolCall(id=f"{approval.id}_{approval.runs}", type="function", function=function)


def shown_input(approval: Approval, sha256: str) -> dict[str, Any] | None:
    """Return the input with this hash, with its secrets masked; None if the approval has no such input."""
    if sha256 == approval.input_sha256:
        return approval.masked.arguments
    return approval.decided_shown if sha256 == approval.decided_sha256 else None


def is_ask(call: Any) -> bool:
    """True if an item of a message's `tool_calls` asks for an approval."""
    function = call.get("function") if isinstance(call, dict) else None
    call_id = call.get("id") if isinstance(call, dict) else None
    by_name = isinstance(function, dict) and function.get("name") == APPROVAL_TOOL
    return by_name or (isinstance(call_id, str) and bool(CALL_ID.fullmatch(call_id)))


def recognised(db: Db, texts: Iterable[str]) -> dict[str, str]:
    """Return the sentences that the texts may hold, by the id of their approval."""
    ids = dict.fromkeys(end[1] for text in texts for end in _SENTENCE_END.finditer(text))
    rows = db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=list(ids)[:_MOST_RECOGNISED]) if ids else []
    Thread.read_ahead(db, rows)
    return {row.id: sentence(db, row) for row in rows}


def without_sentences(text: str, sentences: Mapping[str, str]) -> str:
    """Return the text without these sentences, by the id of their approval."""
    parts: list[str] = []
    at = 0
    for end in _SENTENCE_END.finditer(text):
        asked_by = sentences.get(end[1], "")
        if asked_by and text.endswith(asked_by, at, end.end()):
            parts.append(text[at : end.end() - len(asked_by)])
            at = end.end()
    return "".join([*parts, text[at:]]).strip() if parts else text
