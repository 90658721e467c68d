"""The event `user.tool_confirmation`, which tells the client that a call was decided. A halt withholds it."""

from typing import Annotated, Any, Literal, cast

from typing_extensions import TypedDict

from models.database.rows import Db
from models.session.approval.columns import ApprovalColumns
from models.session.approval.decision import Decision
from models.session.event.fields import ApprovalId, EventId, GrantId, Sha256, one_of
from models.session.event.row import Event
from models.session.locked import Locked
from models.session.thread.row import own_id
from models.session.tool_call.events import OF_CLIENT
from models.session.tool_call.row import ToolCall
from models.workspace.halt import is_halted

_OMITTED = frozenset({"result", "content", "respond"})


class DecisionFacts(TypedDict, total=False):
    """The fields of `Decision.stored` that clients are told."""

    deny_message: str
    interrupt: bool
    outcome: Annotated[str, one_of("rerun", "happened", "give_up")]
    updated_input_sha256: Sha256
    answers_sha256: Sha256
    scope: Annotated[str, one_of("session", "always")]
    match: str
    matches: list[str]
    expires_in_seconds: float
    max_uses: int
    include_sub_agents: bool
    grant_id: GrantId


class StoredConfirmation(DecisionFacts):
    """A decision by a person, a grant, an expiry or an interrupt. Edited input and replies are stored as hashes."""

    type: Literal["user.tool_confirmation"]
    tool_use_id: EventId
    result: Annotated[str, one_of("allow", "deny")]
    approval_id: ApprovalId
    decided_by: str


def is_withheld(db: Db, approval: ApprovalColumns, decision: Decision) -> bool:
    """True if the client would run the call now and the workspace is halted. The end of the halt sends the event."""
    call = db.get_one(ToolCall, approval.tool_call_id)
    runs = decision.result == "allow" and not decision.respond and call.kind in OF_CLIENT and call.announced
    return runs and is_halted(db)


def event_of(approval: ApprovalColumns, decision: dict[str, Any], by: str, *, goes_on: bool) -> StoredConfirmation:
    """Return the event. `decision` is `Decision.stored` as people see it. `goes_on`: as for `Approval.close`."""
    assert approval.tool_call_id is not None, "clients are told of decisions about calls"
    result = decision.get("result") or ("deny" if decision.get("outcome") == "give_up" else "allow")
    choices = cast("DecisionFacts", {name: value for name, value in decision.items() if name not in _OMITTED})
    return {
        "type": "user.tool_confirmation",
        "tool_use_id": approval.tool_call_id,
        "result": result if goes_on else "deny",
        "approval_id": approval.id,
        "decided_by": by,
        **choices,
    }


def send(locked: Locked, approval: ApprovalColumns) -> None:
    """Emit the event that a halt withheld."""
    locked.emit(_of(approval), id=approval.event_id)


def unsent(approval: ApprovalColumns) -> Event:
    """Return the event that a halt withholds, for the response to its sender. Its `processed_at` is None."""
    body = dict[str, Any](_of(approval))
    return Event(
        session_id=approval.session_id,
        seq=0,
        id=approval.event_id,
        workspace_id=approval.workspace_id,
        thread_id=approval.thread_id,
        cross_posted=approval.thread_id != own_id(approval.session_id),
        type=body.pop("type"),
        body=body,
        created_at=approval.decided_at,
        processed_at=None,
    )


def _of(approval: ApprovalColumns) -> StoredConfirmation:
    return event_of(approval, approval.shown("decision") or {}, approval.decided_by or "", goes_on=True)
