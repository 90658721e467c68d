"""tool.look: store a preview of a call's effect on the session's files, for the people who decide about the call."""

import json

from models.database.transactions import transaction
from models.pure.masking import Echoes
from models.session.approval.evidence import SHOWN_WITH_FILES, Evidence
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.tool_call.input import CallInput
from models.settings import settings
from workers.celery import app
from workers.outcome import NOT_CLAIMED
from workers.tools.builtin.preview import preview
from workers.tools.sandbox import workdir

_SECRETS = "The input has secrets, so the change is shown without the file around it."


@app.task(name="tool.look")
def look(approval_id: str, session_id: str, workspace_id: str) -> str:
    """Store the preview for one pending approval. A late or doubled message, or a message for another storage, does nothing.

    Returns the outcome.
    """
    with transaction(workspace_id) as db:
        session, approval = db.get(Session, session_id), db.get(Approval, approval_id)
        if session is None or approval is None or approval.status != "pending" or approval.tool_call_id is None:
            return NOT_CLAIMED
        call = approval.call(db)
        call_input = CallInput.of(db, call)
    if call.kind != "builtin" or call.name not in SHOWN_WITH_FILES:
        return NOT_CLAIMED
    if session.storage_id not in {None, workdir.storage_id(settings().workdir_root)}:
        return f"{call.name}: its files are on another worker's storage"
    if approval.masked.paths and call.name != "bash":
        body = {"problem": _SECRETS}
    else:
        body = preview(call.name, workdir.session_root(session_id), json.loads(approval.input))
    evidence = Echoes(call_input.secrets or ()).value(body)
    with transaction(workspace_id) as db:
        if db.get(Approval, approval_id) is not None:
            Evidence.keep(db, approval_id, session_id, evidence)
    return f"{call.name}: its preview shows " + ("why it would fail now" if "problem" in body else "its place and change")
