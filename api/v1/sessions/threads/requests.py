"""Requests about threads."""

from typing import Literal

from pydantic import Field

from api.door.requests import Paged


class ThreadList(Paged):
    """GET /v1/sessions/{id}/threads."""

    limit: int = Field(1000, ge=1, le=1000)
    statuses: list[Literal["running", "idle", "rescheduling", "terminated"]] = Field(default_factory=list)
