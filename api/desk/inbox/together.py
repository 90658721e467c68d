"""Waiting calls of one tool in one table, and decisions about those that the person chooses there.

The form carries the hash of each call's input, as the table showed it. A call that changed meanwhile is not decided, and one that
arrived meanwhile is not in the form.
"""

from urllib.parse import urlencode

from flask import request

from api.desk import waiting_list
from api.desk.inbox.comparing import Comparison, why_apart
from api.desk.inbox.groups import AXES
from api.desk.inbox.rows import rows_of
from api.desk.inbox.several import why_none
from api.desk.rendering.gist import gist
from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage, query_value
from api.door.parsing import ID, validated
from api.v1.approvals.bulk import LockedApprovals, NoneDecided, decide_all
from api.v1.approvals.requests import MAX_DECISIONS, DecisionsBody
from api.v1.approvals.visible import may_see
from models.briefing.tool_name import tool_in_words
from models.database.rows import Db
from models.errors import Conflict, Invalid, NotFound, Refusal
from models.people.principal import PersonPrincipal
from models.session.approval.kinds import tool_call
from models.session.approval.row import Approval
from models.workspace import denial_reasons

MOST = MAX_DECISIONS
"""Most calls of a table: those with the earliest deadlines."""

Mark = tuple[str, str]
"""The id of an approval, and the hash of the input that the table showed."""


@page("/inbox/together", "inbox", "approvals")
def together(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the table of the waiting calls of a tool that the person may decide, and what became of those just decided."""
    filters, decided_ids = _filters(), [id_ for id_ in (query_value("decided") or "").split() if ID.fullmatch(id_)][:MOST]
    mine = waiting_list.matching(db, person, filters, mine=True).where(tool_call.KIND.sql)
    rows = mine.select(db, "ORDER BY expires_at, id LIMIT %(most)s", most=MOST + 1)
    decided_rows = db.find(Approval, "WHERE id = ANY(%(ids)s) ORDER BY expires_at, id", ids=decided_ids)
    comparison = Comparison.of(rows[:MOST])
    lines = {row.approval.id: row for row in rows_of(db, person, [line.approval for line in comparison.lines])}
    sources = {(row.agent, row.session) for row in lines.values()}
    return FramedPage(
        "inbox/together.html",
        name=tool_in_words(filters["tool"] or ""),
        here=_address(filters),
        comparison=comparison,
        rows=lines,
        apart=[(each, gist(each.approval)) for each in comparison.apart],
        source=next(iter(sources)) if len(sources) == 1 else None,
        has_more=len(rows) > MOST,
        decided=rows_of(db, person, [row for row in decided_rows if may_see(db, person, row)]),
        on_timeout=comparison.lines[0].approval.deadline_effect if comparison.lines else "",
        reasons=denial_reasons.of(db),
        refusal=str(refusal or ""),
    )


@action("/inbox/together", "approvals", again=together)
def decide_together(db: Db, person: PersonPrincipal) -> str:
    """Decide the calls that are chosen, but for those that changed meanwhile, and go on to the table with what became of them."""
    result = request.form.get("do")
    marks: list[Mark] = [(id_, sha256) for id_, _, sha256 in (mark.partition(" ") for mark in request.form.getlist("approval"))]
    if result not in {"allow", "deny"}:
        raise Invalid("do", "must be allow or deny.")
    if not marks:
        raise Invalid("", "Choose at least one call.")
    locked_approvals = LockedApprovals.of(db, person, [id_ for id_, _ in marks[:MOST] if ID.fullmatch(id_)])
    usual = request.form.get("on_timeout", "") if result == "allow" else None
    unchanged_marks = [
        mark for mark in marks[:MOST] if _is_as_it_was(db, person, locked_approvals.rows.get(mark[0]), mark[1], usual)
    ]
    message = request.form.get("deny_message", "").strip()
    same = {"result": result} | ({"deny_message": message} if message and result == "deny" else {})
    if unchanged_marks:
        items = [{"approval_id": id_, "expected_input_sha256": sha256, **same} for id_, sha256 in unchanged_marks]
        try:
            body = validated(DecisionsBody, {"decisions": items}, strict=False)
            decide_all(db, person, body.decisions, locked_approvals=locked_approvals)
        except NoneDecided as refusal:
            raise Conflict(why_none(db, refusal)) from refusal
    return _address(_filters() | {"decided": " ".join(id_ for id_, _ in marks[:MOST])})


def _filters() -> dict[str, str | None]:
    """Return the filters of the table's address. Raises NotFound without a tool."""
    filters: dict[str, str | None] = {name: query_value(name) for name in AXES}
    if filters["tool"] is None:
        raise NotFound("tool", "without a name")
    return filters


def _address(filters: dict[str, str | None]) -> str:
    return "/inbox/together?" + urlencode({name: value for name, value in filters.items() if value})


def _is_as_it_was(db: Db, person: PersonPrincipal, row: Approval | None, sha256: str, usual: str | None) -> bool:
    """True if the call waits, and is as the table showed it.

    `usual`: for an allow, the effect of the table's deadlines, which must show all that would run.
    """
    if row is None or row.status != "pending" or row.runs != sha256 or not may_see(db, person, row):
        return False
    return usual is None or not why_apart(row, usual)
