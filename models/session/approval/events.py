"""The events `approval.*`, and the field `approval` of a call's own event."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from models.audit.principal import Principal
from models.database.rows import Db
from models.people.deciders import shortage
from models.pure.offer import GrantScope, Option, Widest
from models.pure.quorum import Quorum
from models.pure.times import rfc3339
from models.session.approval.columns import ApprovalColumns
from models.session.approval.kinds import KINDS
from models.session.approval.vote import CastVote, Vote
from models.session.event.fields import ApprovalId, EventId, Sha256, Time, one_of
from models.session.event.of_thread import ThreadId
from models.session.thread.row import Thread


class OfferedOptions(TypedDict):
    """The options that people have."""

    options: Annotated[
        list[Option | Literal["deny"]] | None, Field(examples=[["once", "session", "always", "edit", "answer", "deny"]])
    ]
    """What people may decide: allow `once`, for the `session` or `always`, `edit` the input, `answer` in the tool's
    place, `deny`. Null for other kinds than `tool_call`, whose options no setting narrows."""
    not_offered: Annotated[dict[Option, str], Field(examples=[{}])]
    """The options that are not offered, each with the settings that leave it out."""
    default_scope: Annotated[GrantScope | None, Field(examples=["session"])]
    """The scope that a form suggests for a grant. Null if no grant is offered."""
    widest_match: Annotated[Widest | None, Field(examples=["tool"])]
    """The widest `match` of a grant, and the match of a grant whose decision names none. Null if no grant is offered."""


class Requirements(OfferedOptions):
    """Who may decide, and by which options."""

    required_approvals: Annotated[int, Field(examples=[1])]
    """The number of people who must approve. One denial decides."""
    approvers: Annotated[list[list[str]], Field(examples=[[]])]
    """Sets of `user:ID` and `group:ID`. A person who decides is in every set. Empty if every person and API key with the right to
    decide may decide."""
    four_eyes: Annotated[bool, Field(examples=[False])]
    """Whether the people in `started_by` may not decide."""
    people_only: Annotated[bool, Field(examples=[False])]
    """Whether only people who are signed in may decide, and no API key or chat word."""
    started_by: Annotated[list[str], Field(examples=[[]])]
    """The people who started the run, sent a message to it, or edited this call's input, and who made the API keys or the sign-in
    links that they used."""
    shortage: Annotated[str | None, Field(examples=[None])]
    """While the approval waits: why nobody, or too few people, may allow the call, and the remedy. Null if enough people may."""


class Voting(Requirements):
    """Who may decide, and the votes so far."""

    votes: Annotated[list[CastVote], Field(examples=[[]])]
    """The votes that stand. An edit of the input voids the votes before it."""


class PathStep(TypedDict):
    """One thread of a path, with its agent."""

    session_thread_id: ThreadId
    agent_name: Annotated[str, Field(examples=["Researcher"])]


class AskingAgent(TypedDict):
    """The agent that waits."""

    agent_name: Annotated[str, Field(examples=["Researcher"])]
    path: list[PathStep]
    """The threads from the session's own to the one that waits, which is the last."""


class _Hints(TypedDict, total=False):
    annotations: dict[str, Any]
    """Hints of the tool's server, such as MCP's `readOnlyHint`. They are not verified."""


class _Waiting(_Hints, AskingAgent, Voting):
    kind: Annotated[str, one_of(*KINDS)]
    expires_at: Time
    input_sha256: Sha256
    prompt: str
    rule: str


class PendingApproval(_Waiting):
    """The approval that the call waits for."""

    id: ApprovalId


class _AboutApproval(TypedDict):
    approval_id: ApprovalId
    tool_use_id: EventId | None
    """The call that waits. Null for the kind `budget`, about which no call waits."""


class ApprovalRequested(_Waiting, _AboutApproval):
    """A call waits for an approval. Like all events `approval.*`, `grant.*` and `model.*`, sent only with `include=approvals`."""

    type: Literal["approval.requested"]
    tool: str


class ApprovalClosed(Voting, _AboutApproval):
    """An approval was decided, expired or was cancelled."""

    type: Literal["approval.decided", "approval.expired", "approval.cancelled"]
    status: Annotated[str, one_of("allowed", "denied", "expired", "cancelled", "answered")]
    decided_by: str


class ApprovalVoted(CastVote, Voting, _AboutApproval):
    """A person voted. Enough votes to allow, or one vote to deny, decide the approval."""

    type: Literal["approval.voted"]


class ApprovalEscalated(Voting, _AboutApproval):
    """Nobody decided before the deadline. Now the people of the next level may decide, until a deadline of their own."""

    type: Literal["approval.escalated"]
    tool: str
    level: int
    levels: int
    expires_at: Time


class ApprovalExtended(Voting, _AboutApproval):
    """The deadline of an approval was moved to a later time."""

    type: Literal["approval.extended"]
    by: str
    expires_at: Time


class ApprovalReminded(Voting, _AboutApproval):
    """People are reminded of a pending approval."""

    type: Literal["approval.reminded"]
    tool: str
    expires_at: Time


def in_call_event(db: Db, approval: ApprovalColumns) -> PendingApproval:
    """Return the field `approval` of the event of the call that waits."""
    return {"id": approval.id, **_waiting(db, approval)}


def requested(db: Db, approval: ApprovalColumns) -> ApprovalRequested:
    """Return the event of a new approval."""
    return {"type": "approval.requested", **_about(approval), **_waiting(db, approval), "tool": approval.tool}


def voted(db: Db, approval: ApprovalColumns, vote: Vote, standing: Iterable[Vote]) -> ApprovalVoted:
    """Return the event of a vote. `standing` are the votes that stand, this one included."""
    votes = [one.summary for one in standing]
    return {"type": "approval.voted", **_about(approval), **vote.summary, **requirements(db, approval), "votes": votes}


def escalated(db: Db, approval: ApprovalColumns, levels: int) -> ApprovalEscalated:
    """Return the event of an approval that has passed to its next of so many levels."""
    return {
        "type": "approval.escalated",
        **_about(approval),
        "tool": approval.tool,
        "level": approval.level,
        "levels": levels,
        "expires_at": rfc3339(approval.expires_at),
        **voting(db, approval),
    }


def extended(db: Db, approval: ApprovalColumns, principal: Principal) -> ApprovalExtended:
    """Return the event of a later deadline."""
    expires_at = rfc3339(approval.expires_at)
    return {
        "type": "approval.extended",
        **_about(approval),
        "by": str(principal),
        "expires_at": expires_at,
        **voting(db, approval),
    }


def reminded(db: Db, approval: ApprovalColumns) -> ApprovalReminded:
    """Return the event of a reminder."""
    expires_at = rfc3339(approval.expires_at)
    return {
        "type": "approval.reminded",
        **_about(approval),
        "tool": approval.tool,
        "expires_at": expires_at,
        **voting(db, approval),
    }


def closed(db: Db, approval: ApprovalColumns, principal: Principal) -> ApprovalClosed:
    """Return the event of a closed approval, by its status."""
    may_have_votes = approval.quorum or principal.kind == "user"
    votes = voting(db, approval) if may_have_votes else Voting({**requirements(db, approval), "votes": []})
    return {
        "type": _CLOSED.get(approval.status, "approval.decided"),
        **_about(approval),
        "status": approval.status,
        "decided_by": str(principal),
        **votes,
    }


def asking_agent(db: Db, approval: ApprovalColumns) -> AskingAgent:
    """Return the agent that waits, as events and responses have it."""
    path = Thread.path_of(db, approval.session_id, approval.thread_id)
    steps = [PathStep(session_thread_id=thread.id, agent_name=thread.name) for thread in path]
    return {"agent_name": path[-1].name, "path": steps}


def requirements(db: Db, approval: ApprovalColumns) -> Requirements:
    """Return who may decide, how many must agree, whether they are too few, and their options, as events and responses have it."""
    quorum = Quorum.of(approval.quorum)
    return {
        "required_approvals": quorum.required_people,
        "approvers": [list(one) for one in quorum.approvers],
        "four_eyes": quorum.four_eyes,
        "people_only": quorum.needs_people,
        "started_by": [f"user:{person_id}" for person_id in approval.started_by],
        "shortage": shortage(db, quorum, approval.started_by) if approval.status == "pending" else None,
        **offered_options(approval),
    }


def offered_options(approval: ApprovalColumns) -> OfferedOptions:
    """Return the options that people have, as events and responses have them."""
    if not approval.traits.asks_to_run:
        return {"options": None, "not_offered": {}, "default_scope": None, "widest_match": None}
    offer = approval.offer
    return {
        "options": [*offer.options, "deny"],
        "not_offered": offer.left_out,
        "default_scope": offer.scope,
        "widest_match": offer.widest if offer.scopes else None,
    }


def voting(db: Db, approval: ApprovalColumns) -> Voting:
    """Return `requirements`, and the votes so far."""
    return {**requirements(db, approval), "votes": [vote.summary for vote in Vote.of_approval(db, approval.id)]}


_CLOSED: dict[str, Literal["approval.expired", "approval.cancelled"]] = {
    "expired": "approval.expired",
    "cancelled": "approval.cancelled",
}
"""The type of the event by the approval's status. Every other status is a decision's."""


def _about(approval: ApprovalColumns) -> _AboutApproval:
    return {"approval_id": approval.id, "tool_use_id": approval.tool_call_id}


def _waiting(db: Db, approval: ApprovalColumns) -> _Waiting:
    hints: _Hints = {"annotations": approval.annotations} if approval.annotations else {}
    return {
        "kind": approval.kind,
        "expires_at": rfc3339(approval.expires_at),
        "input_sha256": approval.input_sha256,
        "prompt": approval.prompt,
        "rule": approval.rule,
        **asking_agent(db, approval),
        **requirements(db, approval),
        "votes": [],
        **hints,
    }
