"""Decisions about several approvals of the list at once. Each mark carries the hash of the input that its row showed."""

from urllib.parse import urlencode

from flask import request

from api.desk.inbox.list import waiting
from api.desk.rendering.gist import gist
from api.desk.rendering.refusals import sentence
from api.desk.shell.blueprint import action
from api.door.pages import local
from api.door.parsing import validated
from api.v1.approvals.bulk import NoneDecided, decide_all
from api.v1.approvals.requests import DecisionsBody
from models.database.rows import Db
from models.errors import Conflict, Invalid
from models.people.principal import PersonPrincipal
from models.session.approval.face import ROW
from models.session.approval.row import Approval


@action("/inbox/approvals/decisions", "approvals", again=waiting)
def decide_several(db: Db, person: PersonPrincipal) -> str:
    """Decide several rows, all or none, and go back to the list, which says what was decided."""
    result = request.form.get("do")
    marks = [mark.partition(" ")[::2] for mark in request.form.getlist("approval")]
    if not marks:
        raise Invalid("", "Choose at least one call.")
    message = request.form.get("deny_message", "").strip()
    same = {"result": result} | ({"deny_message": message} if message and result == "deny" else {})
    items = [{"approval_id": id_, "expected_input_sha256": sha256, **same} for id_, sha256 in marks]
    body = validated(DecisionsBody, {"decisions": items}, strict=False)
    try:
        decide_all(db, person, body.decisions, ROW)
    except NoneDecided as refusal:
        raise Conflict(why_none(db, refusal)) from refusal
    back = local(request.form.get("back"))
    return f"{back}{'&' if '?' in back else '?'}{urlencode({'decided': ' '.join(id_ for id_, _ in marks)})}"


def why_none(db: Db, refusal: NoneDecided) -> str:
    """Return why none of several calls was decided: the call that was refused as its row names it, and the reason."""
    outcome = next(item for item in refusal.outcomes if item["outcome"] == "refused")
    approval = db.get(Approval, outcome["approval_id"])
    reason = sentence(outcome["message"])
    return f"None of the calls was decided, because of {f'“{gist(approval).text}”' if approval else 'one of them'}. {reason}"
