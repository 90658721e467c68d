"""Grants: what runs without asking, until it ends or somebody revokes it."""

from api.answers.grants import Grant as AnsweredGrant
from api.grants import LIVE, NEWEST
from api.inbox.blueprint import inbox
from api.inbox.door import Page, action, page, shows, wants
from api.inbox.names import Names
from api.paging import Wanted
from api.paging import page as page_of
from api.queue import only_own
from models.database import clock
from models.database.rows import Db
from models.people.principal import PersonPrincipal
from models.session.grant import Grant

_PAGE = 50


@inbox.get("/inbox/grants")
@page("grants", "own or read")
def grants(db: Db, person: PersonPrincipal) -> Page:
    """The grants that allow something now, or all; the newest first."""
    selection = only_own(db, person, Wanted(Grant), "approval_id")
    over = wants("show") == "all"
    if not over:
        selection = selection.where(LIVE)
    rows, after = page_of(db, selection, NEWEST, _PAGE, wants("page"))
    names = Names.of(db, [name for row in rows for name in (row.given_by, row.revoked_by)])
    now = clock.now(db)
    lines = [(row, names[row.given_by], names[row.revoked_by], not AnsweredGrant.of(row, now).live) for row in rows]
    return shows("grants.html", rows=lines, after=after, over=over, may="approvals" in person.scopes)


@inbox.post("/inbox/grants/<grant_id>/revoke")
@action("approvals", section="grants")
def revoke(db: Db, person: PersonPrincipal, grant_id: str) -> str:
    """Revoke a grant."""
    Grant.find(db, grant_id).revoke(db, person)
    return "/inbox/grants"
