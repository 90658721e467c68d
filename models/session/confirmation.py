"""The event `user.tool_confirmation`, from which a client learns that a call was decided. A halt withholds it."""

from typing import TYPE_CHECKING, Any

from models.database.rows import Db
from models.pure import masking
from models.session.call_events import OF_CLIENT
from models.session.decision import Decision
from models.session.event import Event
from models.session.session import Session
from models.session.tool_call import ToolCall
from models.workspace.halt import is_halted

if TYPE_CHECKING:
    from models.session.approval import Approval

CONFIRMATION = "user.tool_confirmation"
_NOT_TOLD = frozenset({"result", "content", "respond"})


def is_withheld(db: Db, approval: "Approval", decision: Decision) -> bool:
    """True if the client would run the call now, and the workspace is halted: the end of the halt sends the event."""
    call = db.get_one(ToolCall, approval.tool_call_id)
    runs = decision.result == "allow" and not decision.respond and call.kind in OF_CLIENT and call.announced
    return runs and is_halted(db)


def body(approval: "Approval", answer: dict[str, Any], by: str, *, goes_on: bool) -> dict[str, Any]:
    """The event's body. `answer` is `Decision.stored`. `goes_on`: whether an allowed call runs as its event has it."""
    result = answer.get("result") or ("deny" if answer.get("outcome") == "give_up" else "allow")
    fields = {"tool_use_id": approval.tool_call_id, "result": result if goes_on else "deny"}
    fields |= {"approval_id": approval.id, "decided_by": by}
    fields |= {name: value for name, value in answer.items() if name not in _NOT_TOLD}
    echoes = approval.echoes if answer.get("deny_message") else masking.Echoes(())
    masked: dict[str, Any] = echoes.value(fields)
    return masked


def send(db: Db, session: Session, approval: "Approval") -> None:
    """Emit the event that a halt withheld."""
    session.emit(db, CONFIRMATION, _of(approval), id=approval.event_id)


def unsent(approval: "Approval") -> Event:
    """The event that a halt withholds, as its sender gets it; `processed_at` is null."""
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


def _of(approval: "Approval") -> dict[str, Any]:
    return body(approval, approval.decision or {}, approval.decided_by or "", goes_on=True)
