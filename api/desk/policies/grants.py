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
from models.session.approval.grant_use import NEVER_USED

_PAGE = 50
_SHOWS = {"": "In force", "unused": "Never used", "all": "All"}
_AGENTS = """
    SELECT a.id, v.body ->> 'name' FROM agent a JOIN agent_version v ON v.agent_id = a.id AND v.version = a.version
    WHERE a.id = ANY(%(ids)s)
"""


@page("/inbox/grants", "policies", "own or read")
def grants(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show the grants that are in force, or all, newest first."""
    selection = only_own(db, person, Selection(Grant), "approval_id")
    show = query_value("show") if query_value("show") in _SHOWS else ""
    if show != "all":
        selection = selection.where(LIVE)
    if show == "unused":
        selection = selection.where(NEVER_USED)
    rows, after = page_of(db, selection, NEWEST, _PAGE, query_value("page"))
    names = Names.of(db, [name for row in rows for name in (row.given_by, row.revoked_by)])
    agents: dict[str, str] = dict(db.rows(_AGENTS, ids=list({row.agent_id for row in rows})))
    lines = [
        (row, agents.get(row.agent_id, ""), names[row.given_by], names[row.revoked_by], shown, _per_day(shown.uses_per_day))
        for row, shown in zip(rows, responses_of(db, rows), strict=True)
    ]
    return FramedPage(
        "policies/grants.html",
        rows=lines,
        after=after,
        shows=[
            (label, f"/inbox/grants?show={value}" if value else "/inbox/grants", value == show) for value, label in _SHOWS.items()
        ],
        show=show,
        may="approvals" in person.scopes,
        reads_all="read" in person.scopes,
    )


def _per_day(uses: float) -> str:
    """Return a mean number of uses in a day, in words: `3.4 a day`, `1 in 5 days`."""
    if uses >= 1:
        return f"{uses:.0f} a day" if uses >= 10 or uses == round(uses) else f"{uses:.1f} a day"
    return f"1 in {1 / uses:.0f} days" if uses >= 0.005 else "hardly ever"


@action("/inbox/grants/<grant_id>/revoke", "approvals", section="policies")
def revoke(db: Db, person: PersonPrincipal, grant_id: str) -> str:
    """Revoke a grant."""
    Grant.find(db, grant_id).revoke(db, person)
    return "/inbox/grants"
