"""The list of approvals: those that wait for the person, all that wait, or the decided ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from api.desk import waiting_list
from api.desk.shell.blueprint import page
from api.door.framed import FramedPage, query_value
from api.door.paging import Order, Selection
from api.door.paging import page as page_of
from api.door.parsing import ID
from api.door.requests import EARLIEST, LATEST
from api.v1.approvals import visible
from models.database import clock
from models.database.rows import Db
from models.errors import Refusal
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.session.approval import sentences
from models.session.approval.face import ROW, Face
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.tasks import tasks_of
from models.session.row import Session
from models.session.thread.row import Thread

TABS = ("mine", "all", "decided")
PAGE = 20
_MOST_TASK = 120
"""Most characters of a sub-agent's task in a line."""
KEPT = 500
"""Approvals of an open page that are looked up again."""
FILTERS = ("agent", "tool", "session", "kind", "group", "q")

NEWEST: Order[Approval] = Order("decided", (Approval.created_at, Approval.id))


@dataclass(frozen=True)
class ListedApproval:
    """One approval in a list."""

    approval: Approval
    face: Face
    agent: str
    """The agent that asks, behind those above it."""
    task: str
    """What the agent was told to do; empty for a session's own agent."""
    session: str
    """The session's title; empty without one."""
    together: int
    """Number of the approvals of the page that wait in the session, and stand together."""
    is_first: bool
    """True for the first of these."""
    outcome: str
    """How the approval ended; empty while it waits."""
    votes: str
    """How many of the required people have voted; empty if one is enough."""
    may_decide: bool
    """True if the person may decide, and the kind of approval needs only yes or no."""
    may_allow: bool
    """True if the row shows the whole call, and the approval offers to allow it once."""


@page("/inbox", "inbox", "own or read")
def waiting(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the list. `refusal`: why several decisions were refused."""
    tab = query_value("show") or "mine"
    if tab not in TABS or "read" not in person.scopes:
        tab = "mine"
    filters = {name: query_value(name) for name in FILTERS}
    selection = waiting_list.matching(db, person, filters, mine=tab == "mine", status="decided" if tab == "decided" else "pending")
    rows, after = page_of(db, selection, NEWEST if tab == "decided" else waiting_list.ORDER, PAGE, query_value("page"))
    rows = [*rows, *_on_page_before(db, person, {row.id for row in rows})]
    now = clock.now(db)
    return FramedPage(
        "inbox/list.html",
        tab=tab,
        tabs=TABS if "read" in person.scopes else ("mine",),
        filters={name: value for name, value in filters.items() if value},
        choices=waiting_list.choices(db, person, mine=tab == "mine"),
        refusal=str(refusal or ""),
        lines=lines(db, person, rows, now),
        after=after,
        notice=waiting_list.decision_notice(db, person, now),
        total=None if tab == "decided" else selection.count(db),
        newest=(Approval.newest(db) or now).isoformat(),
        arrived=0 if tab == "decided" else _arrived(db, selection),
        address=_address(tab, filters),
    )


def _on_page_before(db: Db, person: PersonPrincipal, ids: set[str]) -> list[Approval]:
    """Return the approvals that an open page shows and this list no longer has. The page shows how they ended."""
    page_ids = [id_ for id_ in (query_value("keep") or "").split() if ID.fullmatch(id_) and id_ not in ids][:KEPT]
    result = db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=page_ids) if page_ids else []
    return [row for row in result if visible.may_see(db, person, row)]


def _arrived(db: Db, selection: Selection[Approval]) -> int:
    """Return how many approvals are newer than all that there were when the page was opened, which the page sends as `since`."""
    try:
        since = datetime.fromisoformat(query_value("since") or "")
    except ValueError:
        return 0
    return selection.between("created_at", [("gt", since)]).count(db) if since.tzinfo and EARLIEST <= since <= LATEST else 0


@page("/inbox/next", "inbox", "own or read")
def next_card(db: Db, person: PersonPrincipal) -> str:
    """Go to the next card of the waiting list, behind the card that was just decided or skipped."""
    return waiting_list.address_of_next(
        db, person, after=query_value("after"), notice_of=query_value("decided"), held_ids=(query_value("held") or "").split()
    )


def lines(db: Db, person: PersonPrincipal, rows: Sequence[Approval], now: datetime) -> list[ListedApproval]:
    """Return the approvals as lines of a list. Those that wait in one session stand together, where the first of them stands."""
    Thread.read_ahead(db, rows)
    tasks = tasks_of(db, [(row.session_id, row.thread_id) for row in rows])
    sessions = {row.id: row for row in db.find(Session, "WHERE id = ANY(%(ids)s)", ids=list({row.session_id for row in rows}))}
    votes = Vote.of(db, [row.id for row in rows])
    names = Names.of(db, [row.decided_by for row in rows])
    may = waiting_list.decidable(db, person, rows, votes)
    return [
        ListedApproval(
            row,
            face := Face.of(row, ROW),
            agent=row.path(db),
            task=sentences.shortened(" ".join(tasks.get(row.thread_id, "").split()), _MOST_TASK),
            session=sessions[row.session_id].title or "",
            together=len(group),
            is_first=row is group[0],
            outcome="" if row.status == "pending" else sentences.outcome(row, names[row.decided_by], now),
            may_allow=face.is_whole and row.offer.has("once"),
            may_decide=not row.traits.why_no_click and row.id in may,
            votes=sentences.votes(row, votes[row.id]),
        )
        for group in _groups(rows)
        for row in group
    ]


def _groups(rows: Iterable[Approval]) -> list[list[Approval]]:
    """Return the approvals that wait in one session together, in the order of the first of them; each decided one alone."""
    groups: dict[str, list[Approval]] = {}
    for row in rows:
        groups.setdefault(row.session_id if row.status == "pending" else row.id, []).append(row)
    return list(groups.values())


def _address(tab: str, filters: dict[str, str | None]) -> str:
    """Return the address of this list's first page."""
    return "/inbox?" + urlencode({"show": tab} | {name: value for name, value in filters.items() if value})
