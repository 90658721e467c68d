"""The audit: filter it, verify it, export it."""

from urllib.parse import urlencode

from flask import Response, request

from api.desk.shell.blueprint import desk, page
from api.door import pages, parsing
from api.door.framed import FramedPage
from api.v1.audit.requests import AuditList, AuditVerify
from api.v1.audit.routes import JSON_LINES, listed, verified
from models.audit import text, verifying
from models.audit.verifying import AuditReport
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid
from models.people.names import Names
from models.people.principal import PersonPrincipal

_FILTERS = ("action", "principal", "subject_id", "session_id", "created_at[gte]", "created_at[lt]")


@page("/inbox/audit", "audit", "admin")
def audit(db: Db, _person: PersonPrincipal) -> FramedPage:
    """Show the acts that fit the filters, newest first."""
    return _drawn(db)


@page("/inbox/audit/verify", "audit", "admin")
def verify(db: Db, person: PersonPrincipal) -> FramedPage:
    """Verify the whole audit, and show the report above the acts."""
    try:
        return _drawn(db, verified(person.workspace_id, AuditVerify()))
    except Invalid as refusal:
        return _drawn(db, refusal=str(refusal))


@desk.get("/inbox/audit/export")
def export() -> Response:
    """Export all acts as JSON lines, which `assent audit verify --file` reads."""
    person = pages.current("admin")
    if person is None:
        return pages.to_sign_in()
    with transaction(person.workspace_id) as db:
        now = clock.now(db)
    headers = {"content-disposition": f'attachment; filename="assent-audit-{now:%Y-%m-%d}.jsonl"'}
    return Response(verifying.export(person.workspace_id, now, texts=True), mimetype=JSON_LINES, headers=headers)


def _drawn(db: Db, report: AuditReport | None = None, refusal: str = "") -> FramedPage:
    filters = {name: value for name in (*_FILTERS, "page") if (value := request.args.get(name))}
    dates = {name: f"{value}T00:00:00Z" for name, value in filters.items() if name.startswith("created_at") and "T" not in value}
    try:
        rows, after = listed(db, parsing.validated(AuditList, filters | dates, strict=False))
    except Invalid as error:
        rows, after, refusal = [], None, str(error)
    texts = text.of(db, [(row.chain, row.seq) for row in rows])
    names = Names.of(db, [row.principal for row in rows])
    lines = [(row, names[row.principal], row.details, texts.get((row.chain, row.seq), {})) for row in rows]
    filters.pop("page", None)
    return FramedPage(
        "audit/audit.html", rows=lines, after=after, filters=filters, query=urlencode(filters), report=report, refusal=refusal
    )
