"""Routes of halts: while a workspace is halted, no turn, tool call or delivery begins."""

from typing import Annotated, Literal, Self

from flask import Blueprint
from pydantic import Field, StringConstraints

from api.door.examples import IDS
from api.door.requests import Body, NoQuery, Nothing, examples
from api.door.responses import ResponseModel, Time
from api.door.routes import reads, writes
from models.audit.principal import Principal
from models.database.rows import Db
from models.workspace.halt import Halt as HaltRow

halt = Blueprint("halt", __name__, url_prefix="/v1/halt")


class HaltStart(Body):
    """A halt of the workspace."""

    model_config = examples({"reason": "The refund tool pays twice."}, {})

    reason: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None
    """Shown to everybody while the workspace is halted."""


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
    def of(cls, row: HaltRow | None) -> Self:
        """Return the state of a workspace whose newest halt is `row`."""
        if row:
            return cls.from_row(row, halted=row.ended_at is None)
        return cls(type="halt", halted=False, id=None, reason=None, started_at=None, started_by=None, ended_at=None, ended_by=None)


@halt.get("")
@reads(NoQuery, "read or own", response=Halt)
def show(db: Db, _principal: Principal, _query: NoQuery) -> Halt:
    """Get whether the workspace is halted, with its present or last halt."""
    return Halt.of(HaltRow.newest(db))


@halt.post("")
@writes(HaltStart, "admin", idempotent=True, response=Halt)
def start(db: Db, principal: Principal, body: HaltStart) -> Halt:
    """Halt the workspace.

    No turn, no tool call and no delivery to a client begins after the response. Work that has begun continues. Decisions, messages
    and results are stored. Idempotent: a halt that is open stays unchanged.
    """
    return Halt.of(HaltRow.start(db, principal, body.reason))


@halt.delete("")
@writes(Nothing, "admin", once=True, response=Halt)
def end(db: Db, principal: Principal, _body: Nothing) -> Halt:
    """End the halt of the workspace.

    All waiting work continues, and every deadline moves by the length of the halt. Idempotent.
    """
    return Halt.of(HaltRow.end(db, principal))
