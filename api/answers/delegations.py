"""Delegations as we answer them."""

from typing import Literal, Self

from pydantic import Field

from api.answers.base import Answer, Time
from models.people import delegation as rows

_PERSON = "user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"


class Delegation(Answer):
    """For a time, one person may decide what is another's to decide."""

    id: str = Field(examples=["dlgt_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    type: Literal["delegation"]
    from_: str = Field(alias="from", examples=[_PERSON])
    """The person whose decisions these are."""
    to: str = Field(examples=[_PERSON])
    """The person who decides instead."""
    group: str | None = Field(examples=[None])
    """The group whose decisions are delegated. Null: all decisions."""
    starts_at: Time
    ends_at: Time
    created_at: Time
    created_by: str = Field(examples=[_PERSON])
    ended_at: Time | None = Field(examples=[None])
    """When it was ended before its time."""
    ended_by: str | None = Field(examples=[None])

    @classmethod
    def of(cls, row: rows.Delegation) -> Self:
        """Return a delegation."""
        return cls.from_row(
            row,
            from_=f"user:{row.from_person_id}",
            to=f"user:{row.to_person_id}",
            group=f"group:{row.group_id}" if row.group_id else None,
        )
