"""Routes of legal holds: while a session or the workspace is on hold, nothing of it is deleted, erased or cut."""

from typing import Annotated, Literal, Self

from flask import Blueprint
from pydantic import Field, StringConstraints

from api.door.examples import IDS
from api.door.paging import Order, Selection, listed
from api.door.requests import Body, Id, NoQuery, Nothing, Paged, examples
from api.door.responses import LegalHoldId, Page, ResponseModel, SessionId, Time
from api.door.routes import reads, writes
from models.audit.legal_hold import LegalHold as LegalHoldRow
from models.audit.principal import Principal
from models.database.rows import Db

legal_holds = Blueprint("legal_holds", __name__, url_prefix="/v1/legal_holds")

NEWEST: Order[LegalHoldRow] = Order("legal_holds", (LegalHoldRow.created_at, LegalHoldRow.id))
REASON_LENGTH = 1000


class LegalHoldSet(Body):
    """A new hold on a session, or without one on the whole workspace."""

    model_config = examples(
        {"session_id": IDS["session_id"], "reason": "Case 2026-114, asked for by the legal department."},
        {"reason": "Audit of the year 2026."},
    )

    session_id: Id | None = None
    """Left out: the workspace, with all of its sessions."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=REASON_LENGTH, strip_whitespace=True)]
    """Shown to whoever tries to remove what is on hold."""


class LegalHoldList(Paged):
    """GET /v1/legal_holds: the newest first."""

    session_id: str | None = Field(None, max_length=128)
    """Only holds on this session. Holds on the workspace are left out."""
    open: bool | None = None
    """Whether the hold is not released."""


class LegalHold(ResponseModel):
    """A hold on a session or on the workspace."""

    id: LegalHoldId
    type: Literal["legal_hold"]
    session_id: SessionId | None
    """Null for a hold on the whole workspace."""
    reason: str = Field(examples=["Case 2026-114, asked for by the legal department."])
    created_at: Time
    created_by: str = Field(examples=[f"api_key:{IDS['api_key_id']}"])
    """The principal that set the hold."""
    released_at: Time | None = Field(examples=[None])
    """Null while the hold is open."""
    released_by: str | None = Field(examples=[None])

    @classmethod
    def of(cls, row: LegalHoldRow) -> Self:
        """Return a hold."""
        return cls.from_row(row)


@legal_holds.get("")
@reads(LegalHoldList, "admin", response=Page[LegalHold])
def index(db: Db, _principal: Principal, query: LegalHoldList) -> Page[LegalHold]:
    """List the workspace's legal holds, newest first."""
    selection = Selection(LegalHoldRow).equal(session_id=query.session_id)
    if query.open is not None:
        selection = selection.where("released_at IS NULL" if query.open else "released_at IS NOT NULL")
    return listed(db, selection, NEWEST, query, LegalHold.of)


@legal_holds.get("/<legal_hold_id>")
@reads(NoQuery, "admin", response=LegalHold)
def show(db: Db, _principal: Principal, _query: NoQuery, legal_hold_id: str) -> LegalHold:
    """Get a legal hold."""
    return LegalHold.of(LegalHoldRow.of_id(db, legal_hold_id))


@legal_holds.post("")
@writes(LegalHoldSet, "admin", response=LegalHold)
def create(db: Db, principal: Principal, body: LegalHoldSet) -> LegalHold:
    """Put a session or the workspace on legal hold.

    What is on hold is not deleted, erased, cut from the audit or archived for good: such a request is a 409 that names the hold.
    Sessions on hold work as before.
    """
    return LegalHold.of(LegalHoldRow.set_on(db, principal, body.session_id, body.reason))


@legal_holds.delete("/<legal_hold_id>")
@writes(Nothing, "admin", once=True, response=LegalHold)
def release(db: Db, principal: Principal, _body: Nothing, legal_hold_id: str) -> LegalHold:
    """Release a legal hold.

    Idempotent. The hold stays in the list, with who released it. Other holds on the same session stay open.
    """
    row = LegalHoldRow.of_id(db, legal_hold_id)
    row.release(db, principal)
    return LegalHold.of(LegalHoldRow.of_id(db, legal_hold_id))
