"""Routes of the kill switch: nothing in the workspace begins while it is halted."""

from flask import Blueprint

from api.answers import halt as answers
from api.door import reads, writes
from api.requests.base import NoQuery, Nothing
from api.requests.halt import HaltStart
from models.audit.principal import Principal
from models.database.rows import Db
from models.workspace.halt import Halt

halt = Blueprint("halt", __name__, url_prefix="/v1/halt")


@halt.get("")
@reads(NoQuery, "read or own", answer=answers.Halt)
def show(db: Db, _principal: Principal, _query: NoQuery) -> answers.Halt:
    """Get whether the workspace is halted, since when, by whom and why."""
    return answers.Halt.of(Halt.newest(db))


@halt.post("")
@writes(HaltStart, "admin", once=True, answer=answers.Halt)
def start(db: Db, principal: Principal, body: HaltStart) -> answers.Halt:
    """Halt the workspace.

    No turn, no tool call and no delivery to a client begins after the response. What runs already goes on. Decisions, messages and
    results are stored. Idempotent: a workspace that is halted stays as it is.
    """
    return answers.Halt.of(Halt.start(db, principal, body.reason))


@halt.delete("")
@writes(Nothing, "admin", once=True, answer=answers.Halt)
def end(db: Db, principal: Principal, _body: Nothing) -> answers.Halt:
    """End the halt of the workspace.

    Everything that waited goes on, and every deadline moves by the length of the halt. Idempotent.
    """
    return answers.Halt.of(Halt.end(db, principal))
