"""Routes of approvals: the inbox over all sessions, and the decision."""

import sqlalchemy as sa
from flask import Blueprint

from api import wire
from api.answers import approvals as answers
from api.answers.base import Page
from api.door import Json, reads, writes
from api.paging import Order, page
from api.requests.approvals import ApprovalList, DecisionBody
from api.requests.base import NoQuery
from models import flow
from models.approval import Approval
from models.db import Db
from models.errors import NotFound
from models.principal import Principal
from models.session import Session

approvals = Blueprint("approvals", __name__, url_prefix="/v1/approvals")

OLDEST: Order[Approval] = Order("approvals", (Approval.created_at, Approval.id), lambda a: (a.created_at, a.id), descending=False)


@approvals.get("")
@reads(ApprovalList, answer=Page[answers.Approval])
def index(db: Db, _principal: Principal, query: ApprovalList) -> Json:
    """The workspace's approvals, the longest waiting first unless `order` says otherwise."""
    wanted = sa.select(Approval)
    if query.status:
        wanted = wanted.where(Approval.status == query.status)
    if query.session_id:
        wanted = wanted.where(Approval.session_id == query.session_id)
    order = OLDEST if query.order == "asc" else OLDEST.reversed()
    rows, after = page(db, wanted, order, query.limit, query.page)
    return {"data": [wire.approval(row) for row in rows], "next_page": after}


@approvals.get("/<approval_id>")
@reads(NoQuery, answer=answers.Approval)
def show(db: Db, _principal: Principal, _query: NoQuery, approval_id: str) -> Json:
    """One approval: the question, what was shown, and the answer."""
    return wire.approval(_find(db, approval_id))


@approvals.post("/<approval_id>/decision")
@writes(DecisionBody, "approvals", answer=answers.Approval)
def decide(db: Db, principal: Principal, body: DecisionBody, approval_id: str) -> Json:
    """The one decision. The same again answers the same; another is 409 with the winner."""
    session = Session.lock(db, _find(db, approval_id).session_id)
    # Read again: only what is read under the lock decides.
    approval = db.get_one(Approval, approval_id, populate_existing=True)
    flow.decide(db, session, principal, approval, body.decision())
    db.flush()
    return wire.approval(approval)


def _find(db: Db, approval_id: str) -> Approval:
    found = db.get(Approval, approval_id)
    if found is None:
        raise NotFound("approval", approval_id)
    return found
