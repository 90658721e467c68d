"""Decisions about several approvals of the list at once. Each mark carries the hash of the input that its row showed."""

from flask import request

from api.desk.inbox.list import waiting
from api.desk.shell.blueprint import action
from api.door.pages import local
from api.door.parsing import validated
from api.v1.approvals.bulk import NoneDecided, decide_all
from api.v1.approvals.requests import DecisionsBody
from models.database.rows import Db
from models.errors import Conflict, Invalid
from models.people.principal import PersonPrincipal
from models.session.approval.face import ROW


@action("/inbox/approvals/decisions", "approvals", again=waiting)
def decide_several(db: Db, person: PersonPrincipal) -> str:
    """Decide several rows, all or none."""
    result = request.form.get("do")
    marks = [mark.partition(" ")[::2] for mark in request.form.getlist("approval")]
    if not marks:
        raise Invalid("approval", "choose at least one call.")
    message = request.form.get("deny_message", "").strip()
    same = {"result": result} | ({"deny_message": message} if message and result == "deny" else {})
    items = [{"approval_id": id_, "expected_input_sha256": sha256, **same} for id_, sha256 in marks]
    body = validated(DecisionsBody, {"decisions": items}, strict=False)
    try:
        decide_all(db, person, body.decisions, ROW)
    except NoneDecided as refusal:
        raise Conflict(str(refusal)) from refusal
    return local(request.form.get("back"))
