"""Requests about delegations."""

from typing import Annotated

from pydantic import Field

from api.door.requests import Body, GroupName, Moment, Paged, PersonName, examples


class DelegationGive(Body):
    """A new delegation."""

    model_config = examples(
        {"to": "user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0", "ends_at": "2026-02-14T18:00:00Z"},
        {
            "from": "user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0",
            "to": "user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D1",
            "group": "group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0",
            "ends_at": "2026-02-14T18:00:00Z",
        },
    )

    from_: PersonName | None = Field(None, alias="from")
    """The person who delegates. Left out: the person who is signed in."""
    to: PersonName
    """The person who decides instead."""
    group: GroupName | None = None
    """The group whose decisions are delegated. Left out: all decisions."""
    starts_at: Annotated[Moment, Field(strict=False)] | None = None
    """Left out: now."""
    ends_at: Annotated[Moment, Field(strict=False)]


class DelegationList(Paged):
    """GET /v1/delegations: the newest first."""

    live: bool | None = None
    """Whether the delegation has not ended."""
