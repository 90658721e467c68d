"""The audit: find acts, verify it, export it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from flask import Response, request

from api.desk.audit import actions, reading
from api.desk.audit.filters import Filters
from api.desk.audit.reading import SEARCHED, ActPage
from api.desk.audit.sentences import Part, sentence
from api.desk.audit.things import Thing, Things
from api.desk.audit.verdict import verdict
from api.desk.shell.blueprint import desk, page
from api.door import pages
from api.door.framed import FramedPage
from api.v1.audit.routes import JSON_LINES, verified_lately
from models.audit import text, verifying
from models.audit.acts import CLIENT_ADDRESS, Audit
from models.audit.verifying import AuditReport
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Invalid
from models.people.principal import PersonPrincipal
from models.pure.text.relative_time import day_of


@dataclass(frozen=True)
class Line:
    """One line of the page."""

    act: Audit
    sentence: list[Part]
    day: str
    session: Thing | None
    """The session in which the act happened."""
    texts: Mapping[str, str]
    """The texts of the act that are not erased."""
    vote: Audit | None
    """The vote that was the decision as well."""

    @property
    def address(self) -> str | None:
        """The network address from which the act was caused."""
        return self.act.address or self.texts.get(CLIENT_ADDRESS)

    @property
    def erasable(self) -> dict[str, str | None]:
        """The texts of the act. An erased one is None."""
        return {name: self.texts.get(name) for name in self.act.details.get("texts", ())}


@page("/inbox/audit", "audit", "admin")
def audit(db: Db, _person: PersonPrincipal) -> FramedPage:
    """Show the acts that fit the filters, newest first."""
    return _drawn(db)


@page("/inbox/audit/verify", "audit", "admin")
def verify(db: Db, person: PersonPrincipal) -> FramedPage:
    """Verify the audit, of a long one the newest acts, and show the report above the acts."""
    try:
        return _drawn(db, verified_lately(person.workspace_id))
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
    filters = Filters.of_request(db)
    result = ActPage()
    if not filters.faults:
        try:
            result = reading.read(db, filters.query(), request.args.get("page"))
        except Invalid as error:
            refusal = str(error)
    now = clock.now(db)
    return FramedPage(
        "audit/audit.html",
        days=_days(_lines(db, result, now), filters),
        result=result,
        filters=filters,
        tabs=_tabs(filters),
        actions=actions.choices(),
        choices=filters.choices(db),
        searched=SEARCHED,
        report=report,
        verdict=verdict(db, report, now) if report else None,
        refusal=refusal,
    )


def _days(lines: list[Line], filters: Filters) -> list[tuple[str, str, list[Line]]]:
    """Return each day in words, the address of the page with its acts alone (empty on that page), and its lines."""
    days = []
    for day, of_day in groupby(lines, lambda line: line.act.at.date().isoformat()):
        own = list(of_day)
        is_alone = filters.values.get("from") == filters.values.get("to") == day
        days.append((own[0].day, "" if is_alone else filters.path(**{"from": day, "to": day}), own))
    return days


def _lines(db: Db, result: ActPage, now: datetime) -> list[Line]:
    acts = result.rows
    texts = text.of(db, [(act.chain, act.seq) for act in acts])
    things = Things.of(db, acts)
    lines = []
    for act in acts:
        own = texts.get((act.chain, act.seq), {})
        vote = result.votes.get((act.subject_id, act.principal, act.at)) if act.action == "approval.decided" else None
        lines.append(Line(act, sentence(act, things, own), day_of(act.at, now), things.sessions.get(act.chain), own, vote))
    return lines


def _tabs(filters: Filters) -> list[tuple[Any, ...]]:
    """Return the groups of actions as the macro `filter_chips` takes them."""
    groups = {"": "All", **actions.GROUPS}
    about = "" if filters.about == "all" else filters.about
    return [(label, filters.path(about=value), value == about) for value, label in groups.items()]
