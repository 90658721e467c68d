"""Spend limits in answers, in the SDK's shape."""

from typing import Annotated, Literal, Self

from pydantic import Field

from api.answers.base import AgentId, Answer, SpendLimitId, Time, UserId, WorkspaceId
from models.pure.prices import CURRENCY, cents
from models.workspace import spend_limit


class WorkspaceScope(Answer):
    """All sessions of the workspace."""

    type: Literal["workspace"]
    workspace_id: WorkspaceId


class AgentScope(Answer):
    """All sessions of an agent."""

    type: Literal["agent"]
    agent_id: AgentId


class UserScope(Answer):
    """All sessions of a person."""

    type: Literal["user"]
    user_id: UserId


Scope = Annotated[WorkspaceScope | AgentScope | UserScope, Field(discriminator="type")]


class SpendLimit(Answer):
    """The most that a scope may spend in each period."""

    id: SpendLimitId
    type: Literal["spend_limit"]
    amount: str | None = Field(examples=["50000"])
    """Cents. Null: no limit."""
    currency: Literal["USD"]
    period: Literal["daily", "weekly", "monthly"]
    scope: Scope
    is_enabled: Literal[True]
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, row: spend_limit.SpendLimit) -> Self:
        """Return a limit."""
        return cls.model_validate(
            {
                "id": row.id,
                "type": "spend_limit",
                "amount": None if row.amount is None else cents(row.amount),
                "currency": CURRENCY,
                "period": row.period,
                "scope": {"type": row.scope_type, f"{row.scope_type}_id": row.scope_id},
                "is_enabled": True,
                "created_at": row.created_at,
                "updated_at": row.updated_at,
            }
        )


class SpendLimitDeleted(Answer):
    """The limit is deleted. Sessions that it stopped go on within a minute."""

    id: SpendLimitId
    type: Literal["spend_limit_deleted"]
