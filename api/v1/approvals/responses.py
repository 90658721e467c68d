"""Responses about approvals: the question, the input that is shown, and the decision."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

from pydantic import Field, SerializeAsAny

from api.door.requests import Sha256
from api.door.responses import AgentId, ResponseModel, SessionId, Time, with_fields_of
from api.v1.approvals.requests import ApprovalKind
from api.v1.blocks import Result
from api.v1.grants import Grant
from models.database.rows import Db
from models.pure import policy
from models.pure.json.canonical import canonical_text
from models.pure.offer import Offer
from models.pure.quorum import Escalation
from models.session.approval import row as approval
from models.session.approval.events import AskingAgent, Voting, asking_agent, requirements
from models.session.approval.grant import rule_for
from models.session.approval.reach import Reach
from models.session.approval.vote import Vote
from models.session.event.fields import ApprovalId, EventId, GrantId
from models.session.event.of_thread import ThreadId
from models.session.thread.row import Thread


class MadeDecision(ResponseModel):
    """A decision."""

    result: Literal["allow", "deny"] | None = None
    deny_message: str | None = None
    interrupt: bool | None = None
    updated_input_sha256: Sha256 | None = None
    """The hash of the edited input in the request."""
    answers_sha256: Sha256 | None = None
    """The hash of the replies to the questions."""
    respond: list[Result] | None = None
    scope: Literal["session", "always"] | None = None
    match: str | None = None
    matches: list[str] | None = None
    expires_in_seconds: float | None = None
    max_uses: int | None = None
    include_sub_agents: bool | None = None
    outcome: Literal["rerun", "happened", "give_up"] | None = None
    content: list[Result] | None = None
    grant_id: GrantId | None = None
    """The grant that decided. Null if a person decided."""


class Covers(ResponseModel):
    """The calls that a grant would cover, in words."""

    tool: str | None
    """The calls that `match: tool` covers. Null if the tool offers grants for one exact input only."""
    exact: str
    """The calls that `match: exact` covers."""

    @classmethod
    def of(cls, row: approval.Approval, offer: Offer) -> "Covers | None":
        """Return the calls that a grant would cover. None if no grant is offered, as for other kinds of approvals than calls."""
        if not row.traits.asks_to_run or not offer.scopes:
            return None
        every = policy.covers(rule_for(row, "tool")) if offer.widest == "tool" else None
        return cls(tool=every, exact=policy.covers(rule_for(row, "exact")))


class Reaches(ResponseModel):
    """The agents whose calls a grant would cover, in words, by the fields of the decision. Null for what is not offered."""

    session: str | None = Field(examples=["calls of the agent Researcher, version 2, in this session"])
    """With `scope: session`."""
    include_sub_agents: str | None = Field(examples=["calls of every agent in this session, with all sub-agents"])
    """With `scope: session` and `include_sub_agents`."""
    always: str | None = Field(examples=["calls of the agent Researcher in every session"])
    """With `scope: always`."""

    @classmethod
    def of(cls, thread: Thread, offer: Offer) -> "Reaches | None":
        """Return the reach of grants for a call of this thread. None if no grant is offered."""
        if not offer.scopes:
            return None
        of_session, always = offer.has("session"), offer.has("always")
        return cls(
            session=Reach.of(thread, "session").in_words(thread.name) if of_session else None,
            include_sub_agents=Reach.of(thread, "session", include_sub_agents=True).in_words(thread.name) if of_session else None,
            always=Reach.of(thread, "always").in_words(thread.name) if always else None,
        )


class FormQuestion(ResponseModel):
    """A form that a person fills in."""

    message: str
    fields: dict[str, Any] = Field(alias="schema")
    """The JSON Schema of the form's content."""


class PageQuestion(ResponseModel):
    """A page that a person visits and then accepts."""

    message: str
    url: str


class UnknownAttempt(ResponseModel):
    """The attempt whose outcome is unknown."""

    number: int
    worker: str | None
    started_at: Time
    output: str
    """The output up to the worker's last report."""


class Question(ResponseModel):
    """The question about one call."""

    id: ApprovalId
    type: Literal["approval"]
    kind: ApprovalKind
    status: Literal["pending", "allowed", "denied", "expired", "cancelled", "answered"]
    session_id: SessionId
    session_thread_id: ThreadId
    """The thread that waits."""
    agent_id: AgentId | None
    """The agent that waits; for one that a coordinator defined, the coordinator's."""
    tool_use_id: EventId | None
    """The call that waits. Null for the kind `budget`, about which no call waits."""
    tool: str = Field(examples=["bash"])
    prompt: str = Field(examples=["Run this command?"])
    input: dict[str, Any] = Field(examples=[{"command": "git push origin main"}])
    """The input of the call. Secrets are masked unless the request sets `reveal`."""
    input_canonical: str = Field(examples=['{"command":"git push origin main"}'])
    """`input` as canonical JSON (RFC 8785). `input_sha256` is its hash if nothing is masked."""
    masked: list[str] = Field(examples=[[]])
    """JSON Pointers to the masked values in `input`."""
    input_sha256: Sha256
    """The hash of the real input."""
    rule: str = Field(examples=["agent rule: ask bash(git push *)"])
    annotations: dict[str, Any] | None
    """Hints of the tool's server, such as MCP's `readOnlyHint`. They are not verified."""
    leads_to: dict[str, str] | None
    """By JSON Pointer, the targets of symbolic links in the input, if these are the reason for the approval. Allowing the call
    allows these targets only."""
    questions: SerializeAsAny[dict[str, FormQuestion | PageQuestion] | None]
    """For the kind `question`: the questions of the tool. Decide with `answers`, which has the same keys."""
    attempt: SerializeAsAny[UnknownAttempt | None]
    """For the kind `unknown_outcome`: the attempt whose outcome is unknown."""
    covers: Covers | None
    reach: Reaches | None
    """The agents whose calls a grant would cover. Null if no grant is offered."""
    created_at: Time
    expires_at: Time
    on_timeout: Literal["deny", "end_run", "escalate", "allow"]


class EscalatedLevel(ResponseModel):
    """Who may decide at one level."""

    approvers: list[list[str]]
    timeout_seconds: float


class Escalated(ResponseModel):
    """The escalation of the approval: after each missed deadline, the people of the next level may decide."""

    level: int
    """The number of escalations so far."""
    levels: list[EscalatedLevel]
    then: Literal["deny", "end_run"]
    """The effect of the last level's deadline."""

    @classmethod
    def of(cls, row: approval.Approval) -> "Escalated | None":
        """Return the levels of an approval and its present level. None if the approval does not escalate."""
        if row.escalation is None:
            return None
        escalation = Escalation.of(row.escalation)
        levels = [
            EscalatedLevel(approvers=[list(names) for names in quorum.approvers], timeout_seconds=seconds)
            for quorum, seconds in zip(escalation.quorums, escalation.seconds, strict=True)
        ]
        return cls.from_row(escalation, level=row.level, levels=levels)


@with_fields_of(Voting)
class VotingState(ResponseModel):
    """Who may decide, and the votes so far."""


@with_fields_of(AskingAgent)
class Asked(ResponseModel):
    """The agent that waits."""


@dataclass(frozen=True)
class Beside:
    """What a response tells about an approval beside its row."""

    grants: Sequence[Grant] = ()
    """The grants that the decision created."""
    votes: Sequence[Vote] = ()
    """The votes that stand."""
    position: int | None = None
    """The approval's place in the waiting list that the request names."""


NOTHING_BESIDE = Beside()


class Approval(Asked, VotingState, Question):
    """One question about one call."""

    escalation: Escalated | None = Field(examples=[None])
    queue_position: int | None = Field(examples=[None])
    """The approval's place, from 1, in the waiting list of the person that the query `for` names. Null without `for`."""
    remind_at: Time | None
    """The time of the reminder. Null if it was sent, or none is planned."""
    reminded_at: Time | None
    may_have_been_decided_after: Time | None = Field(examples=[None])
    """The time of the backup from which the installation was restored while this approval was pending. A decision after that time,
    and what followed, is not known here. Null for every other approval."""
    decision: SerializeAsAny[MadeDecision | None]
    decided_input: dict[str, Any] | None
    """The input that a person sent to run instead of `input`, with secrets masked."""
    decided_sha256: Sha256 | None = Field(examples=[None])
    """The hash of the real edited input."""
    decided_by: str | None
    decided_at: Time | None
    event_id: EventId | None = Field(examples=[None])
    """The id of the event `user.tool_confirmation` that stores the decision."""
    grant: Grant | None
    """The grant that the decision created; the first one of several."""
    grants: list[Grant] = Field(examples=[[]])
    """The grants that the decision created."""

    @classmethod
    def of(cls, db: Db, row: approval.Approval, beside: Beside = NOTHING_BESIDE, *, reveal: bool = False) -> Self:
        """Return an approval as `read` does, at once."""
        return cls.read(db, row, beside, reveal=reveal)()

    @classmethod
    def read(cls, db: Db, row: approval.Approval, beside: Beside = NOTHING_BESIDE, *, reveal: bool = False) -> Callable[[], Self]:
        """Return a function that returns an approval, with what stands beside it.

        The function reads nothing, and masks the approval's texts. `reveal` leaves secrets unmasked.
        """
        more = {**requirements(db, row), **asking_agent(db, row)}
        reach = Reaches.of(row.thread(db), row.offer) if row.traits.asks_to_run else None
        return partial(cls._shown, row, more, beside, reach, reveal=reveal)

    @classmethod
    def _shown(cls, row: approval.Approval, more: dict[str, Any], beside: Beside, reach: "Reaches | None", *, reveal: bool) -> Self:
        masked_input = row.masked
        is_hidden = masked_input.paths and not reveal
        return cls.from_row(
            row,
            tool_use_id=row.tool_call_id,
            session_thread_id=row.thread_id,
            input=masked_input.arguments if is_hidden else json.loads(row.input),
            input_canonical=canonical_text(masked_input.arguments) if is_hidden else row.input,
            masked=list(masked_input.paths) if is_hidden else [],
            leads_to=row.leads_to if reveal else row.shown("leads_to"),
            questions=row.questions if reveal else row.shown("questions"),
            attempt=row.attempt_told if reveal else row.shown("attempt_told"),
            covers=Covers.of(row, row.offer),
            reach=reach,
            **more,
            votes=[vote.summary for vote in beside.votes],
            escalation=Escalated.of(row),
            queue_position=beside.position,
            decision=row.decision if reveal else row.shown("decision"),
            decided_input=json.loads(row.decided_input) if reveal and row.decided_input else row.decided_shown,
            grant=beside.grants[0] if beside.grants else None,
            grants=list(beside.grants),
            may_have_been_decided_after=row.backup_at,
        )


class BulkDecided(ResponseModel):
    """One of several decisions."""

    approval_id: ApprovalId
    outcome: Literal["decided", "voted", "repeated"]
    """`voted`: more people must approve before the approval is decided."""
    approval: Approval


class AllDecided(ResponseModel):
    """The decisions, in the order of the request."""

    data: list[BulkDecided]


class CoveredCalls(ResponseModel):
    """What one grant would cover."""

    match: str | dict[str, Any] = Field(examples=["bash(git push *)"])
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """The covered calls, in words."""


class GrantPreview(ResponseModel):
    """The grants that a decision would create."""

    type: Literal["grant_preview"]
    scope: Literal["session", "always"]
    match: str | dict[str, Any] = Field(examples=["bash(git push *)"])
    """The first one's match."""
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """The calls that the first one covers, in words."""
    grants: list[CoveredCalls]
    """Each grant: several if the request has `matches`."""
    reach: str = Field(examples=["calls of the agent Researcher, version 2, in this session"])
    """The agents whose calls are covered, in words."""
    waiting: int
    """The number of other waiting calls that the grants together would release, up to a limit."""
