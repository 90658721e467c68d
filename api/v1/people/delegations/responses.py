"""Responses about delegations."""

from typing import Literal, Self

from pydantic import Field

from api.door.examples import IDS
from api.door.responses import ResponseModel, Time
from models.people import delegation

_PERSON = f"user:{IDS['user_id']}"


class Delegation(ResponseModel):
    """The right of one person to make the decisions of another person for a time."""

    id: str = Field(examples=[IDS["delegation_id"]])
    type: Literal["delegation"]
    from_: str = Field(alias="from", examples=[_PERSON])
    """The person who delegates the decisions."""
    to: str = Field(examples=[_PERSON])
    """The person who decides instead."""
    group: str | None = Field(examples=[None])
    """The group whose decisions are delegated. Null for all decisions."""
    starts_at: Time
    ends_at: Time
    created_at: Time
    created_by: str = Field(examples=[_PERSON])
    accepted_at: Time | None
    """The time from which the person who delegates agrees. Null if somebody else gave the delegation and that person has not yet
    accepted it: then it gives no right."""
    ended_at: Time | None = Field(examples=[None])
    """The time at which somebody ended the delegation early."""
    ended_by: str | None = Field(examples=[None])

    @classmethod
    def of(cls, row: delegation.Delegation) -> Self:
        """Return a delegation."""
        return cls.from_row(
            row,
            from_=f"user:{row.from_person_id}",
            to=f"user:{row.to_person_id}",
            group=f"group:{row.group_id}" if row.group_id else None,
        )
