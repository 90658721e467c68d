"""Grants: the list, and revoking a grant."""

from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.paging import page as page_of
from api.v1.approvals.visible import only_own
from api.v1.grants import LIVE, NEWEST, responses_of
from models.database.rows import Db
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.session.approval.grant import Grant

_PAGE = 50
_AGENTS = """
    SELECT a.id, v.body ->> 'name' FROM agent a JOIN agent_version v ON v.agent_id = a.id AND v.version = a.version
    WHERE a.id = ANY(%(ids)s)
"""


@page("/inbox/grants", "policies", "own or read")
def grants(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show the grants that are in force, or all, newest first."""
    selection = only_own(db, person, Selection(Grant), "approval_id")
    over = query_value("show") == "all"
    if not over:
        selection = selection.where(LIVE)
    rows, after = page_of(db, selection, NEWEST, _PAGE, query_value("page"))
    names = Names.of(db, [name for row in rows for name in (row.given_by, row.revoked_by)])
    agents: dict[str, str] = dict(db.rows(_AGENTS, ids=list({row.agent_id for row in rows})))
    lines = [
        (row, agents.get(row.agent_id, ""), names[row.given_by], names[row.revoked_by], not shown.live, shown.not_offered)
        for row, shown in zip(rows, responses_of(db, rows), strict=True)
    ]
    return FramedPage(
        "policies/grants.html",
        rows=lines,
        after=after,
        over=over,
        may="approvals" in person.scopes,
        reads_all="read" in person.scopes,
    )


@action("/inbox/grants/<grant_id>/revoke", "approvals", section="policies")
def revoke(db: Db, person: PersonPrincipal, grant_id: str) -> str:
    """Revoke a grant."""
    Grant.find(db, grant_id).revoke(db, person)
    return "/inbox/grants"
