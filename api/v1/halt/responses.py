"""Responses about halts."""

from typing import Literal, Self

from pydantic import Field

from api.door.examples import IDS
from api.door.responses import ResponseModel, Time
from models.workspace import halt


class Halt(ResponseModel):
    """Whether the workspace is halted, with its present or last halt."""

    type: Literal["halt"]
    halted: bool
    """Whether the workspace is halted now, so that no turn, tool call or delivery begins."""
    id: str | None = Field(examples=["halt_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    """Null if the workspace was never halted."""
    reason: str | None = Field(examples=["The refund tool pays twice."])
    started_at: Time | None
    started_by: str | None = Field(examples=[f"api_key:{IDS['api_key_id']}"])
    ended_at: Time | None = Field(examples=[None])
    """Null while the workspace is halted."""
    ended_by: str | None = Field(examples=[None])

    @classmethod
    def of(cls, row: halt.Halt | None) -> Self:
        """Return the state of a workspace whose newest halt is `row`."""
        if row:
            return cls.from_row(row, halted=row.ended_at is None)
        return cls(type="halt", halted=False, id=None, reason=None, started_at=None, started_by=None, ended_at=None, ended_by=None)
