"""The audit: filter it, verify it, export it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from api.desk.audit import sentences
from api.desk.shell.blueprint import desk, page
from api.door import pages, parsing
from api.door.framed import FramedPage
from api.v1.audit.requests import AuditList, AuditVerify
from api.v1.audit.routes import JSON_LINES, listed, verified
from models.audit import text, verifying
from models.audit.acts import Audit
from models.audit.verifying import AuditReport
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid
from models.people.names import Names
from models.people.principal import PersonPrincipal

_FILTERS = ("action", "principal", "subject_id", "session_id", "created_at[gte]", "created_at[lt]")


@dataclass(frozen=True)
class Act:
    """One act of the page."""

    row: Audit
    by: str
    subject: tuple[str, str]
    """The name and the address of what it was done to; empty if there is none."""
    texts: dict[str, Any]
    """Its texts that can be erased."""

    @property
    def did(self) -> str:
        """What was done, before the subject's name."""
        return sentences.did(self.row)


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
    about = request.args.get("about", "")
    dates = {name: f"{value}T00:00:00Z" for name, value in filters.items() if name.startswith("created_at") and "T" not in value}
    try:
        rows, after = listed(db, parsing.validated(AuditList, filters | dates, strict=False), sentences.actions_about(about))
    except Invalid as error:
        rows, after, refusal = [], None, str(error)
    texts = text.of(db, [(row.chain, row.seq) for row in rows])
    names, subjects = Names.of(db, [row.principal for row in rows]), sentences.subjects(db, rows)
    filters.pop("page", None)
    return FramedPage(
        "audit/audit.html",
        acts=[
            Act(row, names[row.principal], subjects.get(row.subject_id, ("", "")), texts.get((row.chain, row.seq), {}))
            for row in rows
        ],
        after=after,
        filters=filters,
        about=about,
        groups=sentences.GROUPS,
        actions=sorted(((action, sentences.words_of(action)) for action in sentences.ACTS), key=lambda item: item[1]),
        query=urlencode(filters | ({"about": about} if about else {})),
        report=report,
        refusal=refusal,
    )
