"""Routes of the audit: list, verify, export, erase. All of them need the scope `admin`."""

from collections.abc import Iterator, Sequence
from itertools import islice

from flask import Blueprint, Response

from api.door import auth, parsing
from api.door.paging import Selection, page
from api.door.requests import NoQuery
from api.door.responses import Page
from api.door.routes import Door, dumps, opens, reads, respond, writes
from api.v1.audit import responses
from api.v1.audit.listing import NEWEST, by_spans, index_of
from api.v1.audit.requests import AuditErase, AuditExport, AuditList, AuditVerify
from models.audit import erasing, seal_key, text, verifying
from models.audit.acts import TOLD, Audit, time_text
from models.audit.principal import Principal
from models.audit.seals import SignedHead
from models.audit.verifying import AuditReport, Item
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid
from models.workspace.row import Workspace

audit = Blueprint("audit", __name__, url_prefix="/v1/audit")

SCOPE = "admin"
JSON_LINES = "application/jsonl"
VERIFIED_AT_ONCE = 5000
"""Most acts that one request verifies: some 0.4 s of the 1 s of CPU time that a request may take. `assent audit verify` handles
more, outside the web processes."""


@audit.get("")
@reads(AuditList, SCOPE, response=Page[responses.AuditAct])
def index(db: Db, _principal: Principal, query: AuditList) -> Page[responses.AuditAct]:
    """List the acts in the workspace's audit, newest first."""
    rows, after = listed(db, query)
    texts = text.of(db, [(row.chain, row.seq) for row in rows])
    return Page[responses.AuditAct](
        data=[responses.AuditAct.of(row, texts.get((row.chain, row.seq), {})) for row in rows], next_page=after
    )


def listed(db: Db, query: AuditList) -> tuple[Sequence[Audit], str | None]:
    """Return a page of the acts that `query` selects, and the cursor of the next page."""
    selection = Selection(Audit).equal(
        chain=query.session_id, action=query.action, principal=query.principal, subject_id=query.subject_id
    )
    selection = selection.between("at", query.between)
    if condition := index_of([query.action] if query.action else []):
        return page(db, selection.where(condition), NEWEST, query.limit, query.page)
    edge = min((at for op, at in query.between if op in {"lt", "lte"}), default=None)
    oldest = max((at for op, at in query.between if op in {"gt", "gte"}), default=None)
    return by_spans(db, selection, query.limit, query.page, edge, oldest)


@audit.get("/head")
@reads(NoQuery, SCOPE, response=responses.AuditHead)
def head(db: Db, principal: Principal, _query: NoQuery) -> responses.AuditHead:
    """Get the newest entry of the workspace's chain, its newest signed seal, and the public keys."""
    workspace = db.get_one(Workspace, principal.workspace_id)
    return responses.AuditHead.of(workspace, SignedHead.newest(db, workspace.id))


@audit.get("/verify")
@opens(Door(responses.AuditVerification, scopes=(SCOPE,), query=AuditVerify))
def verify() -> Response:
    """Verify that no act in the audit was changed or removed.

    `unsealed` counts the acts that no seal covers yet. A change of these acts could not be detected.
    """
    principal = auth.authenticate(SCOPE)
    query = parsing.query(AuditVerify)
    return respond(dumps(responses.AuditVerification.of(verified(principal.workspace_id, query))))


def verified(workspace_id: str, query: AuditVerify) -> AuditReport:
    """Return the report on a workspace's acts. Reads the acts in transactions of its own. Raises Invalid for too many acts."""
    items = _at_most(VERIFIED_AT_ONCE, verifying.walk(workspace_id, query.session_id))
    return verifying.verify(workspace_id, items, seal_key.trusted_keys(), only=query.session_id, signed_since=query.signed_since)


def verified_lately(workspace_id: str) -> AuditReport:
    """Return the report on a workspace's acts; of a workspace with more than `VERIFIED_AT_ONCE` acts, on the newest ones alone.

    A note says from where it begins. Raises Invalid if none of the newest acts is a seal.
    """
    with transaction(workspace_id) as db:
        is_long = bool(db.rows(f"SELECT FROM audit WHERE {TOLD} LIMIT 1 OFFSET %(most)s", most=VERIFIED_AT_ONCE))
        is_long = is_long or db.get_one(Workspace, workspace_id).audit_seq > VERIFIED_AT_ONCE
    try:
        if not is_long:
            return verified(workspace_id, AuditVerify())
    except Invalid:
        pass
    beginning = verifying.Beginning.of(workspace_id)
    if beginning is None:
        raise Invalid("", f"this workspace has more than {VERIFIED_AT_ONCE} acts, and none of the newest is a seal: {_COMMAND}")
    report = verifying.verify(workspace_id, beginning.walk(workspace_id), seal_key.trusted_keys(), heads=beginning.heads)
    since = f"act {beginning.seal} of {time_text(beginning.at)}"
    report.notes.insert(0, f"Only the newest acts were looked at, from the seal of {since} on. To verify all of them, {_COMMAND}")
    return report


_COMMAND = "run `assent audit verify`."


@audit.get("/export")
@opens(Door(responses.AuditLine, scopes=(SCOPE,), query=AuditExport, media_type=JSON_LINES))
def export() -> Response:
    """Export all acts as JSON lines.

    `assent audit verify --file` reads this format.
    """
    principal = auth.authenticate(SCOPE)
    query = parsing.query(AuditExport)
    with transaction(principal.workspace_id) as db:
        now = clock.now(db)
    return Response(verifying.export(principal.workspace_id, now, texts=query.texts), mimetype=JSON_LINES)


@audit.post("/erase")
@writes(AuditErase, SCOPE, response=responses.AuditErasure)
def erase(db: Db, principal: Principal, body: AuditErase) -> responses.AuditErasure:
    """Erase from the audit texts that people wrote.

    Their salted digests stay in the chain, and a new act records who erased the texts. What is on a legal hold is not erased.
    """
    erasure = erasing.erase(db, principal, chain=body.chain, seq=body.seq, by=body.principal)
    return responses.AuditErasure.from_row(erasure)


def _at_most(most: int, items: Iterator[Item]) -> Iterator[Item]:
    yield from islice(items, most)
    if next(items, None) is not None:
        raise Invalid("session_id", f"this workspace has more than {most} acts: run `assent audit verify`, or name one session.")
