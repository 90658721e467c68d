"""Responses about spend limits, in the SDK's form."""

from typing import Annotated, Literal, Self

from pydantic import Field

from api.door.responses import AgentId, ResponseModel, SpendLimitId, Time, UserId, WorkspaceId
from models.people.person import Person
from models.pure.pricing.prices import CURRENCY, cents, exact
from models.session.spending.effective_limit import EffectiveLimit
from models.workspace import spend_limit


class WorkspaceScope(ResponseModel):
    """All sessions of the workspace."""

    type: Literal["workspace"]
    workspace_id: WorkspaceId


class AgentScope(ResponseModel):
    """All sessions of an agent."""

    type: Literal["agent"]
    agent_id: AgentId


class UserScope(ResponseModel):
    """All sessions of a person."""

    type: Literal["user"]
    user_id: UserId


Scope = Annotated[WorkspaceScope | AgentScope | UserScope, Field(discriminator="type")]


class SpendLimit(ResponseModel):
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


class UserActor(ResponseModel):
    """A person of the workspace."""

    type: Literal["user_actor"]
    user_id: UserId
    name: str = Field(examples=["Anna"])
    email_address: str = Field(examples=["anna@example.com"])
    deleted: Literal[False]


class SpendSummary(ResponseModel):
    """The limit that applies to a person in a period: the lower one of the person's own limit and the workspace's."""

    actor: UserActor
    amount: str | None = Field(examples=["50000"])
    """Cents. Null: no limit."""
    currency: Literal["USD"]
    period: Literal["daily", "weekly", "monthly"]
    period_to_date_spend: str = Field(examples=["12050.5"])
    """Cents that the person spent in the present period, with up to three decimals."""
    scope: UserScope
    source: Scope
    """The scope of the limit that applies."""
    spend_limit_id: SpendLimitId

    @classmethod
    def of(cls, row: EffectiveLimit, person: Person) -> Self:
        """Return a person's limit."""
        limit = SpendLimit.of(row.limit)
        return cls(
            actor=UserActor(type="user_actor", user_id=person.id, name=person.name, email_address=person.email, deleted=False),
            amount=limit.amount,
            currency=limit.currency,
            period=limit.period,
            period_to_date_spend=exact(round(row.spent * 100, 3)),
            scope=UserScope(type="user", user_id=person.id),
            source=limit.scope,
            spend_limit_id=limit.id,
        )


class SpendLimitDeleted(ResponseModel):
    """The limit is deleted. Sessions that the limit stopped continue within a minute."""

    id: SpendLimitId
    type: Literal["spend_limit_deleted"]
