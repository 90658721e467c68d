"""Who may decide an approval, and the votes so far."""

from typing import Literal, Self

from pydantic import Field

from api.door.requests import Sha256
from api.door.responses import ResponseModel, Time
from models.pure.offer import GrantScope, Option, Widest
from models.pure.quorum import Escalation
from models.session.approval import row as approval
from models.session.approval import vote


class CastVote(ResponseModel):
    """One person's part of the decision."""

    by: str = Field(examples=["user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    """The person who voted."""
    on_behalf_of: str | None = Field(examples=[None])
    """The person who delegated the vote. Null if the vote is the voter's own."""
    result: Literal["allow", "deny", "edit"]
    """`edit`: with four eyes, the person edited the input, and somebody else must allow it."""
    input_sha256: Sha256
    """The hash of the input that was voted on."""
    at: Time

    @classmethod
    def of(cls, row: vote.Vote) -> Self:
        """Return a vote."""
        return cls.from_row(row, **row.summary | {"at": row.created_at})


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


class Demands(ResponseModel):
    """Who may decide, and by which answers."""

    required_approvals: int = Field(examples=[1])
    """The number of people who must approve. One denial decides."""
    approvers: list[list[str]] = Field(examples=[[]])
    """Sets of `user:ID` and `group:ID`. A person who decides is in every set. Empty if every person and API key with the right to
    decide may decide."""
    four_eyes: bool = Field(examples=[False])
    """Whether the people in `started_by` may not decide."""
    people_only: bool = Field(examples=[False])
    """Whether only people who are signed in may decide, and no API key or chat word."""
    started_by: list[str] = Field(examples=[[]])
    """The people who started the run, sent a message to it, or edited this call's input, and who made the API keys or the sign-in
    links that they used."""
    shortage: str | None = Field(examples=[None])
    """While the approval waits: why nobody, or too few people, may allow the call, and the remedy. Null if enough people may."""
    options: list[Option | Literal["deny"]] | None = Field(examples=[["once", "session", "always", "edit", "answer", "deny"]])
    """The answers that people may give: allow `once`, for the `session` or `always`, `edit` the input, `answer` in the tool's
    place, `deny`. Null for other kinds than `tool_call`, whose answers no setting narrows."""
    not_offered: dict[Option, str] = Field(examples=[{}])
    """The answers that are not offered, each with the settings that leave it out."""
    default_scope: GrantScope | None = Field(examples=["session"])
    """The scope that a form suggests for a grant. Null if no grant is offered."""
    widest_match: Widest | None = Field(examples=["tool"])
    """The widest `match` of a grant, and the match of a grant whose decision names none. Null if no grant is offered."""


class Standing(Demands):
    """Who may decide, and the votes so far."""

    votes: list[CastVote] = Field(examples=[[]])
    """The votes that stand. An edit of the input voids the votes before it."""
