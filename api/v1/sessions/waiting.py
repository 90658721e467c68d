"""The calls of a session that wait for somebody: a person, the client, or the client's own worker."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from api.door.requests import Sha256
from api.door.responses import ResponseModel, ThreadId, Time
from api.v1.approvals.requests import ApprovalKind
from api.v1.approvals.responses import Asked, VotingState
from models.database.rows import Db
from models.pure.json.shortening import shortened
from models.pure.masking import masked_paths
from models.session.approval.events import asking_agent, requirements
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.fields import ApprovalId, EventId
from models.session.row import Session
from models.session.thread.row import PRESENT_TURNS_OF_EACH, Thread
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall

MOST_INPUT = 4000
"""Most characters of a call's input in a session's response. The approval, or the call's event, has the whole input."""
_WITH_CLIENT = f"WHERE status = 'with_client' AND turn_id = {PRESENT_TURNS_OF_EACH} ORDER BY deadline_from, position, id"


class WaitingCall(ResponseModel):
    """A call that waits."""

    session_thread_id: ThreadId
    """The thread that waits: the session's own, or a sub-agent's."""
    tool: str = Field(examples=["bash"])
    input: dict[str, Any] = Field(examples=[{"command": "git push origin main"}])
    """The input that would run, with secrets masked. An input of more than about 4000 characters is shortened: its long texts end
    with the number of characters that are left out."""
    input_is_whole: bool
    """False if a secret in `input` is masked, or `input` is shortened. `GET /v1/approvals/{id}` has the whole input of a call that
    waits for a person, and the call's event that of any other call."""
    input_sha256: Sha256
    """The hash of the whole and unmasked input that would run."""
    since: Time


class WaitingForPerson(Asked, VotingState, WaitingCall):
    """One approval that a session waits for."""

    waits_for: Literal["person"]
    tool_use_id: EventId | None
    """The call that waits. Null for the kind `budget`, about which no call waits."""
    approval_id: ApprovalId
    kind: ApprovalKind
    prompt: str = Field(examples=["Run this command?"])
    expires_at: Time

    @classmethod
    def of(cls, db: Db, row: Approval, votes: Sequence[Vote]) -> Self:
        """Return a pending approval with the votes that stand."""
        masked = row.masked
        edited = row.decided_shown
        shown, is_masked = (masked.arguments, bool(masked.paths)) if edited is None else (edited, bool(masked_paths(edited)))
        return cls.from_row(
            row,
            session_thread_id=row.thread_id,
            approval_id=row.id,
            tool_use_id=row.tool_call_id,
            **_input(shown, is_masked=is_masked),
            input_sha256=row.runs,
            **asking_agent(db, row),
            **requirements(db, row),
            votes=[vote.summary for vote in votes],
            since=row.created_at,
        )


class WaitingForResult(WaitingCall):
    """One call that runs outside Assent, and whose result somebody posts."""

    waits_for: Literal["client", "worker"]
    """`worker`: a worker of the session's self-hosted environment. `client`: whoever runs the agent's custom tools."""
    tool_use_id: EventId
    expires_at: Time | None
    """The time after which the call gets no result any more. Null if it waits for any time."""

    @classmethod
    def of(cls, db: Db, row: ToolCall, call_input: CallInput) -> Self:
        """Return a call that its client has."""
        masked = call_input.shown_input if call_input.proposed_input is None else Approval.shown_input_of(db, row)
        shown = call_input.input if masked is None else masked
        return cls.from_row(
            row,
            session_thread_id=row.thread_id,
            waits_for="worker" if row.kind == "self_hosted" else "client",
            tool_use_id=row.id,
            tool=row.name,
            **_input(shown, is_masked=shown != call_input.input),
            since=row.deadline_from,
            expires_at=row.answer_by,
        )


Waiting = Annotated[WaitingForPerson | WaitingForResult, Field(discriminator="waits_for")]


def waiting_on(db: Db, sessions: Sequence[Session]) -> dict[str, list[Waiting]]:
    """Return the calls of each session that wait for somebody, by the session's id."""
    waiting: dict[str, list[Waiting]] = {session_id: [*calls] for session_id, calls in for_people(db, sessions).items()}
    ids = _under_way(sessions)
    calls = db.find(ToolCall, _WITH_CLIENT, sessions=ids) if ids else []
    inputs = db.find(CallInput, "WHERE tool_call_id = ANY(%(calls)s)", calls=[call.id for call in calls]) if calls else []
    by_call = {call_input.tool_call_id: call_input for call_input in inputs}
    for call in calls:
        waiting[call.session_id].append(WaitingForResult.of(db, call, by_call[call.id]))
    return waiting


def for_people(db: Db, sessions: Sequence[Session]) -> dict[str, list[WaitingForPerson]]:
    """Return the pending approvals of each session, oldest first, by the session's id."""
    waiting: dict[str, list[WaitingForPerson]] = {session.id: [] for session in sessions}
    approvals = Approval.pending(db, *_under_way(sessions))
    Thread.read_ahead(db, approvals)
    votes = Vote.of(db, [approval.id for approval in approvals])
    for approval in approvals:
        waiting[approval.session_id].append(WaitingForPerson.of(db, approval, votes[approval.id]))
    return waiting


def _under_way(sessions: Sequence[Session]) -> list[str]:
    """Return the ids of the sessions in which a call may wait: also while another thread of the session runs."""
    return [session.id for session in sessions if session.status not in {"idle", "terminated"}]


def _input(shown: dict[str, Any], *, is_masked: bool) -> dict[str, Any]:
    """Return the fields about an input whose secrets are masked."""
    fitting, is_whole = shortened(shown, MOST_INPUT)
    return {"input": fitting, "input_is_whole": is_whole and not is_masked}
