"""Requests about spend limits: in the SDK's form, with the additional scope `agent`."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from api.door.examples import IDS
from api.door.requests import Body, Id, Paged, examples
from models.pure.pricing.prices import dollars_of

Period = Literal["daily", "weekly", "monthly"]
ScopeType = Literal["workspace", "agent", "user"]


class WorkspaceScopeParams(Body):
    """All sessions of the key's workspace."""

    type: Literal["workspace"]
    workspace_id: Id


class AgentScopeParams(Body):
    """All sessions of an agent."""

    type: Literal["agent"]
    agent_id: Id


class UserScopeParams(Body):
    """All sessions of a person, as `/v1/usage` counts them."""

    type: Literal["user"]
    user_id: Id


Scope = Annotated[WorkspaceScopeParams | AgentScopeParams | UserScopeParams, Field(discriminator="type")]


class SpendLimitSet(Body):
    """The limit of a scope in a period. It replaces the former limit of the same scope and period."""

    model_config = examples({"amount": "50000", "scope": {"type": "agent", "agent_id": IDS["agent_id"]}, "period": "monthly"})

    amount: Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,11})$")] | None
    """Cents, as an integer in a string: `50000` is $500.00. Null: no limit."""
    scope: Scope
    period: Period = "monthly"
    """Days begin at midnight UTC, weeks on Monday, months on the 1st."""

    @property
    def scope_key(self) -> tuple[ScopeType, str]:
        """The scope's type and id."""
        return self.scope.type, getattr(self.scope, f"{self.scope.type}_id")

    @property
    def dollars(self) -> Decimal | None:
        """The amount in US dollars."""
        return None if self.amount is None else dollars_of(self.amount)


class EffectiveList(Paged):
    """GET /v1/spend_limits/effective: by person, the last added first. `limit` counts people."""

    period: list[Period] = Field(default_factory=list, max_length=3)
    """Only these periods. Left out: all."""
    user_ids: list[Id] = Field(default_factory=list, max_length=100)
    """Only these people. Left out: all people with a limit."""


class SpendLimitList(Paged):
    """GET /v1/spend_limits: newest first."""

    scope_type: list[ScopeType] = Field(default_factory=list, max_length=3)
    """Only limits with these types of scope. Left out: all."""
    workspace_id: str | None = Field(None, max_length=128)
    """Only limits of the scope `workspace` with this id."""
