"""The decisions for calls that ask for an approval (`asking`): `tool` messages with JSON."""

from typing import Any, Literal

from pydantic import Field

from api.chat.asking import CALL_ID, shown_input
from api.chat.requests import MODEL, TextContent, ToolMessage
from api.door import parsing
from api.door.requests import YEAR, Body, Message
from models.errors import Conflict, Invalid
from models.pure.json.canonical import canonical
from models.pure.naming import APPROVAL_TOOL
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.row import Session

_EXAMPLE = '{"decision": "approve"}'
_SCOPES: dict[str | None, Literal["once", "session", "always"]] = {
    None: "once",
    "once": "once",
    "session": "session",
    "always": "always",
    "unlimited": "always",
}
_FIELDS = {
    "approval_id": "tool_call_id",
    "result": "content.decision",
    "deny_message": "content.message",
    "updated_input": "content.arguments",
    "scope": "content.scope",
    "expires_in_seconds": "content.expires_in_seconds",
}
"""Fields of a message, by the fields of `Decision`."""


class ChatDecision(Body):
    """The content of a `tool` message that decides an approval, as JSON."""

    decision: Literal["approve", "deny"] | None = None
    approved: bool | None = None
    """Another spelling of `decision`."""
    scope: Literal["once", "session", "always", "unlimited"] | None = None
    """`unlimited` is another word for `always`."""
    message: Message | None = None
    """With deny: the reason, for the model."""
    arguments: dict[str, Any] | None = None
    """With approve: the whole input that runs in the place of the model's."""
    expires_in_seconds: float | None = Field(None, gt=0, le=YEAR)

    envelope: Literal["tool_result"] | None = Field(None, alias="__type")
    role: Literal["tool"] | None = None
    tool_call_id: str | None = None
    agent_id: str | None = Field(None, alias="agentId")
    tool_name: str | None = Field(None, alias="toolName")
    tool_args: dict[str, Any] | None = Field(None, alias="toolArgs")
    working_directory: str | None = Field(None, alias="workingDirectory")

    @property
    def result(self) -> Literal["allow", "deny"] | None:
        """The decision; None if the message has none."""
        if self.decision is not None:
            return "allow" if self.decision == "approve" else "deny"
        return None if self.approved is None else "allow" if self.approved else "deny"


def is_decision(message: Any) -> bool:
    """True if a message decides a call that asks for an approval."""
    return isinstance(message, ToolMessage) and bool(CALL_ID.fullmatch(message.tool_call_id))


def is_envelope(text: str) -> bool:
    """True if a text is a decision in its envelope, which belongs into a message of the role tool."""
    if not (text.lstrip().startswith("{") and '"__type"' in text and CALL_ID.search(text)):
        return False
    try:
        return parsing.json_object(text.encode()).get("__type") == "tool_result"
    except Invalid:
        return False


def event(locked: Locked, message: ToolMessage, field: str) -> dict[str, Any]:
    """Return the event by which `receive` takes a decision. `field` is the path of the message.

    Raises Invalid for a decision that does not fit the call, Conflict if the input has changed since the client was asked.
    """
    session = locked.session
    call_id = CALL_ID.fullmatch(message.tool_call_id)
    assert call_id, "is_decision has checked the id"
    approval_id, sha256 = call_id.groups()
    approval = locked.db.get(Approval, approval_id)
    if approval is None or approval.session_id != session.id or not approval.traits.asks_to_run:
        remedy = f"decide the calls of {APPROVAL_TOOL} in its last reply."
        raise Invalid(f"{field}.tool_call_id", f"session {session.id} never asked by {message.tool_call_id!r}: {remedy}")
    chat_decision = _chat_decision(message.content, f"{field}.content")
    shown = shown_input(approval, sha256)
    if approval.status == "pending" and sha256 != approval.runs:
        raise Conflict(
            f"{field}.tool_call_id: the input of this call was changed after you were asked, so your message decides nothing. "
            "Send the messages again without it; then you are asked about the new input.",
            {"input_sha256": approval.runs},
        )
    _check_certain(message, chat_decision, f"{field}.content")
    _check_same(session, approval, chat_decision, shown, f"{field}.content")
    edit = chat_decision.arguments if chat_decision.arguments is None or not _equal(chat_decision.arguments, shown) else None
    decision = Decision(
        result=chat_decision.result,
        deny_message=chat_decision.message or None,
        updated_input=edit,
        scope=_SCOPES[chat_decision.scope],
        expires_in_seconds=chat_decision.expires_in_seconds,
        expected_input_sha256=sha256,
    )
    return {"type": "user.tool_confirmation", "approval_id": approval.id, "decision": decision}


def field_of(name: str) -> str:
    """Return the field of a message that holds a field of a decision."""
    return _FIELDS.get(name, f"content.{name}")


def _chat_decision(content: TextContent | dict[str, Any], field: str) -> ChatDecision:
    """Return the decision in a message's content. Raises Invalid."""
    if isinstance(content, dict):
        values = content
    else:
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        try:
            values = parsing.json_object(text.encode())
        except Invalid as refusal:
            raise Invalid(field, f"must be JSON such as {_EXAMPLE}; {str(refusal).removeprefix('body: ')}") from None
    try:
        return parsing.validated(ChatDecision, values)
    except Invalid as refusal:
        raise refusal.renamed(f"{field}.{refusal.field}") from None


def _check_certain(message: ToolMessage, chat_decision: ChatDecision, content: str) -> None:
    """Raise Invalid if the decision says nothing certain, or is sent for another call."""
    if chat_decision.result is None or (chat_decision.decision is not None and chat_decision.approved is not None):
        raise Invalid(f"{content}.decision", f"must be approve or deny, said once, as in {_EXAMPLE}.")
    if chat_decision.result == "allow" and chat_decision.message:
        raise Invalid(f"{content}.message", "is the reason of a denial; leave it out with approve.")
    if chat_decision.tool_call_id not in {None, message.tool_call_id}:
        raise Invalid(f"{content}.tool_call_id", f"differs from the message's, {message.tool_call_id!r}; send one call's decision.")


def _check_same(
    session: Session, approval: Approval, chat_decision: ChatDecision, shown: dict[str, Any] | None, content: str
) -> None:
    """Raise Invalid if the decision repeats facts of the call, and they are of another call than the one that it decides."""
    agent_ids = [approval.agent_id or session.agent_id, session.agent_id]
    if chat_decision.agent_id not in {None, *(name + agent_id for name in ("", MODEL) for agent_id in agent_ids)}:
        raise Invalid(f"{content}.agentId", f"the call is of agent {agent_ids[0]}; leave it out, or name that agent.")
    if chat_decision.tool_name not in {None, approval.tool}:
        raise Invalid(f"{content}.toolName", f"the call is of {approval.tool!r}; leave it out, or name that tool.")
    if chat_decision.tool_args is not None and not _equal(chat_decision.tool_args, shown):
        remedy = "leave it out; to change the input, send the new one as arguments."
        raise Invalid(f"{content}.toolArgs", f"differs from the input that you were asked about: {remedy}")
    if chat_decision.working_directory is not None and chat_decision.working_directory != (shown or {}).get("working_directory"):
        raise Invalid(f"{content}.workingDirectory", "the call names no such directory in its input; leave it out.")


def _equal(one: dict[str, Any], other: dict[str, Any] | None) -> bool:
    return other is not None and canonical(one) == canonical(other)
