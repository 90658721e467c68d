"""Routes of the audit: list, verify, export, erase. All of them need the scope `admin`."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice

from flask import Blueprint, Response

from api.door import auth, parsing
from api.door.paging import Order, Selection, page, place
from api.door.requests import NoQuery
from api.door.responses import Page
from api.door.routes import Door, dumps, opens, reads, respond, writes
from api.v1.audit import responses
from api.v1.audit.requests import AuditErase, AuditExport, AuditList, AuditVerify
from models.audit import erasing, seal_key, text, verifying
from models.audit.acts import Audit
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
SPANS = [timedelta(minutes=10) * 12**n for n in range(5)]
"""Spans of time in which a page is searched, backwards from its beginning: ever longer spans, up to five months, then all acts.
No index sorts a workspace's acts by time, since the index would slow down every insert. The BRIN index finds spans."""

NEWEST: Order[Audit] = Order("audit", (Audit.at, Audit.chain, Audit.seq))


@audit.get("")
@reads(AuditList, SCOPE, response=Page[responses.AuditAct])
def index(db: Db, _principal: Principal, query: AuditList) -> Page[responses.AuditAct]:
    """List the acts in the workspace's audit, newest first."""
    rows, after = listed(db, query)
    texts = text.of(db, [(row.chain, row.seq) for row in rows])
    return Page[responses.AuditAct](
        data=[responses.AuditAct.of(row, texts.get((row.chain, row.seq), {})) for row in rows], next_page=after
    )


def listed(db: Db, query: AuditList, actions: Sequence[str] = ()) -> tuple[Sequence[Audit], str | None]:
    """Return a page of the acts that `query` selects, and the cursor of the next page. `actions`: only acts with one of these."""
    selection = Selection(Audit).equal(
        chain=query.session_id, action=query.action, principal=query.principal, subject_id=query.subject_id
    )
    selection = selection.between("at", query.between)
    if actions:
        selection = selection.where("action = ANY(%(actions)s)", actions=list(actions))
    edges = [at for op, at in query.between if op in {"lt", "lte"}]
    edge = min([*edges, place(NEWEST, query.page)[0] if query.page else clock.now(db)])
    oldest = max((at for op, at in query.between if op in {"gt", "gte"}), default=None)
    for span in SPANS:
        rows, after = page(db, selection.where("at > %(span)s", span=edge - span), NEWEST, query.limit, query.page)
        if after or (oldest and oldest > edge - span):
            break
    else:
        rows, after = page(db, selection, NEWEST, query.limit, query.page)
    return rows, after


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
