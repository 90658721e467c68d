"""Responses about usage over time."""

from typing import Literal, Self

from pydantic import Field

from api.door.responses import AgentId, SessionId, ThreadId, Time
from api.v1.spending.amounts import Usage
from models.pure.pricing.money import spending
from models.session.spending.report import Line


class UsageLine(Usage):
    """The usage of one group in one span of time. A field by which the request does not group is null."""

    type: Literal["usage"]
    starting_at: Time
    ending_at: Time
    """The span ends before this time."""
    agent_id: AgentId | None
    person: str | None = Field(examples=["user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    """The person for whom the sessions ran. Null also for sessions that ran for no person."""
    session_id: SessionId | None
    thread_id: ThreadId | None
    turn_id: str | None = Field(examples=["turn_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    provider: str | None = Field(examples=["anthropic"])
    model: str | None = Field(examples=["claude-opus-5-5"])

    @classmethod
    def of(cls, line: Line) -> Self:
        """Return a line of a report."""
        groups = {name: line.groups.get(name) or None for name in ("agent_id", "session_id", "thread_id", "turn_id")}
        groups |= {name: line.groups.get(name) for name in ("provider", "model")}
        person = line.groups.get("person_id")
        span = {"starting_at": line.starting_at, "ending_at": line.ending_at}
        groups |= {"person": f"user:{person}" if person else None}
        return cls.model_validate({"type": "usage", **span, **groups, **spending(line.sums)})
