"""The event `user.tool_confirmation`, which tells the client that a call was decided. A halt withholds it."""

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from models.database.rows import Db
from models.session.approval.columns import ApprovalColumns
from models.session.approval.decision import Decision
from models.session.event import Event
from models.session.event.fields import ApprovalId, EventId, GrantId, Sha256, one_of
from models.session.locked import Locked
from models.session.tool_call.events import OF_CLIENT
from models.session.tool_call.row import ToolCall
from models.workspace.halt import is_halted

CONFIRMATION = "user.tool_confirmation"
_OMITTED = frozenset({"result", "content", "respond"})


class StoredConfirmation(TypedDict):
    """A decision by a person, a grant, an expiry or an interrupt. Edited input and replies are stored as hashes."""

    type: Literal["user.tool_confirmation"]
    tool_use_id: EventId
    result: Annotated[str, one_of("allow", "deny")]
    approval_id: ApprovalId
    decided_by: str
    deny_message: NotRequired[str]
    interrupt: NotRequired[bool]
    outcome: NotRequired[Annotated[str, one_of("rerun", "happened", "give_up")]]
    updated_input_sha256: NotRequired[Sha256]
    answers_sha256: NotRequired[Sha256]
    scope: NotRequired[Annotated[str, one_of("session", "always")]]
    match: NotRequired[str]
    expires_in_seconds: NotRequired[float]
    max_uses: NotRequired[int]
    grant_id: NotRequired[GrantId]


def is_withheld(db: Db, approval: ApprovalColumns, decision: Decision) -> bool:
    """True if the client would run the call now and the workspace is halted. The end of the halt sends the event."""
    call = db.get_one(ToolCall, approval.tool_call_id)
    runs = decision.result == "allow" and not decision.respond and call.kind in OF_CLIENT and call.announced
    return runs and is_halted(db)


def body(approval: ApprovalColumns, decision: dict[str, Any], by: str, *, goes_on: bool) -> dict[str, Any]:
    """Return the event's body. `decision` is `Decision.stored` as people see it. `goes_on`: as for `Approval.close`."""
    result = decision.get("result") or ("deny" if decision.get("outcome") == "give_up" else "allow")
    fields = {"tool_use_id": approval.tool_call_id, "result": result if goes_on else "deny"}
    fields |= {"approval_id": approval.id, "decided_by": by}
    return fields | {name: value for name, value in decision.items() if name not in _OMITTED}


def send(locked: Locked, approval: ApprovalColumns) -> None:
    """Emit the event that a halt withheld."""
    locked.emit(CONFIRMATION, _of(approval), id=approval.event_id)


def unsent(approval: ApprovalColumns) -> Event:
    """Return the event that a halt withholds, for the response to its sender. Its `processed_at` is None."""
    return Event(
        session_id=approval.session_id,
        seq=0,
        id=approval.event_id,
        workspace_id=approval.workspace_id,
        type=CONFIRMATION,
        body=_of(approval),
        created_at=approval.decided_at,
        processed_at=None,
    )


def _of(approval: ApprovalColumns) -> dict[str, Any]:
    return body(approval, approval.shown("decision") or {}, approval.decided_by or "", goes_on=True)
