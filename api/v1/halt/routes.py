"""Routes of halts: while a workspace is halted, no turn, tool call or delivery begins."""

from flask import Blueprint

from api.door.requests import NoQuery, Nothing
from api.door.routes import reads, writes
from api.v1.halt import responses
from api.v1.halt.requests import HaltStart
from models.audit.principal import Principal
from models.database.rows import Db
from models.workspace.halt import Halt

halt = Blueprint("halt", __name__, url_prefix="/v1/halt")


@halt.get("")
@reads(NoQuery, "read or own", response=responses.Halt)
def show(db: Db, _principal: Principal, _query: NoQuery) -> responses.Halt:
    """Get whether the workspace is halted, with its present or last halt."""
    return responses.Halt.of(Halt.newest(db))


@halt.post("")
@writes(HaltStart, "admin", once=True, response=responses.Halt)
def start(db: Db, principal: Principal, body: HaltStart) -> responses.Halt:
    """Halt the workspace.

    No turn, no tool call and no delivery to a client begins after the response. Work that has begun continues. Decisions, messages
    and results are stored. Idempotent: a halt that is open stays unchanged.
    """
    return responses.Halt.of(Halt.start(db, principal, body.reason))


@halt.delete("")
@writes(Nothing, "admin", once=True, response=responses.Halt)
def end(db: Db, principal: Principal, _body: Nothing) -> responses.Halt:
    """End the halt of the workspace.

    All waiting work continues, and every deadline moves by the length of the halt. Idempotent.
    """
    return responses.Halt.of(Halt.end(db, principal))
