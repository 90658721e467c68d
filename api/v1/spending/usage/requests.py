"""Requests about usage over time."""

from typing import Literal

from pydantic import Field

from api.door.requests import Moment, Paged, PersonName

Group = Literal["agent", "person", "session", "thread", "turn", "provider", "model"]


class UsageList(Paged):
    """GET /v1/usage: sums of usage, by time and by the columns in `group_by`."""

    starting_at: Moment | None = None
    """Left out: 30 days before `ending_at`, or 1 day for a report that needs hours."""
    ending_at: Moment | None = None
    """The span ends before this time. Left out: now."""
    bucket_width: Literal["1d", "1h"] | None = None
    """The length of the span that one line covers: a day (UTC) or an hour. Left out: the whole time."""
    group_by: list[Group] = Field(default_factory=list, max_length=4)
    agent_id: str | None = Field(None, max_length=128)
    session_id: str | None = Field(None, max_length=128)
    person: PersonName | None = None
    provider: str | None = Field(None, max_length=128)
    model: str | None = Field(None, max_length=256)
