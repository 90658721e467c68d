"""The list of approvals: those that wait for the person, all that wait, unknown outcomes, or the decided ones."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import request

from api.desk import waiting_list
from api.desk.inbox.groups import AXES, PAGE, SOON, Axis, Group, WaitingPage, add_several, by_day
from api.desk.inbox.rows import rows_of
from api.desk.shell.blueprint import page
from api.door.framed import FramedPage, query_value
from api.door.paging import Count, Order, Selection
from api.door.paging import page as page_of
from api.door.parsing import ID
from api.door.requests import EARLIEST, LATEST
from api.v1.approvals import visible
from models.briefing.tool_name import tool_in_words
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid, Refusal
from models.people.person import Person
from models.people.principal import PersonPrincipal
from models.people.saved_view import views_of
from models.people.sign_in import SignIn
from models.pure.text.relative_time import day_of
from models.session.approval.kinds import KINDS, unknown_outcome
from models.session.approval.row import Approval
from models.workspace import denial_reasons

TABS = {"mine": "For you", "all": "All", "unknown": "Unknown", "decided": "Decided"}
"""By the name in the address."""
_OF_EVERYBODY = ("all", "unknown")
"""The tabs of people who see more than what waits for them."""
KEPT = 500
"""Approvals of an open page that are looked up again."""
FILTERS = ("agent", "tool", "session", "kind", "group", "due", "q")
OF_DECIDED = ("person", "day")
"""Further filters of the decided approvals: who decided, and on which day."""
NEWEST: Order[Approval] = Order("decided", (Approval.decided_at, Approval.id))


@dataclass(frozen=True)
class ListAddress:
    """What a list shows, as its address says it."""

    tab: str
    filters: dict[str, str]
    axis: Axis
    cursor: str | None = None

    @classmethod
    def of_request(cls, person: PersonPrincipal) -> "ListAddress":
        """Return what the request's address says."""
        return cls.of_query(request.query_string.decode("ascii", "replace"), person)

    @classmethod
    def of_query(cls, query: str, person: PersonPrincipal) -> "ListAddress":
        """Return what a query says. A tab that the person does not have is that of what waits for the person. Raises Invalid."""
        try:
            fields = parse_qsl(query, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise Invalid("", f"an address of the list has at most {_MOST_FIELDS} fields.") from None
        values = {name: text for name, value in fields if (text := value.replace("\0", ""))}
        tab, axis = values.get("show", "mine"), next((axis for axis in AXES if axis == values.get("by")), AXES[0])
        tab = tab if tab in tabs_of(person) else "mine"
        names = FILTERS + OF_DECIDED if tab == "decided" else FILTERS
        filters = {name: values[name] for name in names if name in values}
        if not waiting_list.day_named(filters.get("day")):
            filters.pop("day", None)
        return cls(tab, filters, axis, values.get("page"))

    def query(self, **changes: str | None) -> str:
        """Return the query of the list with other filters, another tab, axis or page. None leaves a filter out."""
        parts = {"show": self.tab, "by": self.axis} | self.filters | changes
        return urlencode({name: value for name, value in parts.items() if value and value != _DEFAULTS.get(name)})

    def path(self, **changes: str | None) -> str:
        """Return the list's address, with the changes of `query`."""
        query = self.query(**changes)
        return f"/inbox?{query}" if query else "/inbox"

    def selection(self, db: Db, person: PersonPrincipal, now: datetime) -> Selection[Approval]:
        """Return the approvals of the list."""
        status = "decided" if self.tab == "decided" else "pending"
        selection = waiting_list.matching(db, person, dict(self.filters), mine=self.tab == "mine", status=status)
        if self.tab == "unknown":
            selection = selection.where(unknown_outcome.KIND.sql)
        if self.filters.get("due") == "soon" and status == "pending":
            selection = selection.where("expires_at < %(due_until)s", due_until=now + SOON)
        return selection


_MOST_FIELDS = 50
_DEFAULTS = {"show": "mine", "by": "agent"}


def tabs_of(person: PersonPrincipal) -> tuple[str, ...]:
    """Return the tabs that the person has."""
    return tuple(name for name in TABS if "read" in person.scopes or name not in _OF_EVERYBODY)


@page("/inbox", "inbox", "own or read")
def waiting(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the list. `refusal`: why several decisions were refused."""
    address, now = ListAddress.of_request(person), clock.now(db)
    selection = address.selection(db, person, now)
    groups, after = _groups(db, person, address, selection, now)
    shown_ids = {row.approval.id for group in groups for row in group.rows}
    status = "decided" if address.tab == "decided" else "pending"
    choices = waiting_list.choices(db, person, mine=address.tab == "mine", status=status)
    choices["tool"] = [(tool, tool_in_words(tool)) for tool in choices["tool"]]
    kept_rows = rows_of(db, person, _on_page_before(db, person, shown_ids))
    viewer = db.get_one(Person, person.person_id)
    views = [(view.name, f"/inbox?{view.query}", view.query == address.query()) for view in views_of(viewer)]
    return FramedPage(
        "inbox/list.html",
        address=address,
        here=address.path(page=address.cursor),
        tabs=_tabs(db, person, address, is_chosen=not any(is_shown for _, _, is_shown in views)),
        views=views,
        folded_groups=(viewer.folded_groups or []) if address.tab != "decided" else [],
        chooses_all=query_value("choose") == "all" and "x-refresh" not in request.headers,
        axes=AXES if address.tab != "decided" else (),
        choices=choices,
        chips=_chips(address, choices, now),
        refusal=str(refusal or ""),
        groups=[*groups, *([Group("kept", "Decided meanwhile", kept_rows)] if kept_rows else [])],
        after=after,
        notices=waiting_list.decision_notices(db, person, now),
        total=None if address.tab == "decided" else selection.count(db),
        newest=(Approval.newest(db) or now).isoformat(),
        arrived=0 if address.tab == "decided" else _arrived(db, selection),
        reasons=denial_reasons.of(db),
        nothing=_nothing(address, person),
        needs_way_back=SignIn.needs_way_back(db, person.sign_in_id),
    )


def _groups(
    db: Db, person: PersonPrincipal, address: ListAddress, selection: Selection[Approval], now: datetime
) -> tuple[list[Group], str | None]:
    """Return the groups of the page, and the cursor of the next page."""
    if address.tab == "decided":
        rows, after = page_of(db, selection, NEWEST, PAGE, address.cursor)
        return by_day(rows_of(db, person, rows), now), after
    if "due" in address.filters or "kind" in address.filters or address.tab == "unknown":
        rows, after = page_of(db, selection, waiting_list.ORDER, PAGE, address.cursor)
        page = WaitingPage((), (), rows, after, is_soon_cut=False, is_beyond_cut=False)
    else:
        page = WaitingPage.of(db, selection, now, address.cursor)
    groups = page.groups(rows_of(db, person, page.all), address.axis)
    if "approvals" in person.scopes:
        mine = replace(address, tab="mine").selection(db, person, now)
        add_several(db, mine, groups, address.axis)
    return groups, page.after


def _tabs(db: Db, person: PersonPrincipal, address: ListAddress, *, is_chosen: bool) -> list[tuple[str, str, bool, Count | None]]:
    """Return the tabs as the macro `filter_chips` takes them. Counts are of all approvals, without the filters.

    `is_chosen`: False if a saved view is chosen instead of a tab.
    """
    everything = ListAddress("mine", {}, address.axis)
    now = clock.now(db)
    result = []
    for name in tabs_of(person):
        tab = replace(everything, tab=name)
        count = None if name == "decided" else tab.selection(db, person, now).count(db)
        result.append((TABS[name], tab.path(), is_chosen and name == address.tab, count))
    return result


def _chips(address: ListAddress, choices: dict[str, list[Any]], now: datetime) -> list[tuple[str, str]]:
    """Return each filter in words, with the address of the list without it."""
    return [(_in_words(name, value, choices, now), address.path(**{name: None})) for name, value in address.filters.items()]


def _nothing(address: ListAddress, person: PersonPrincipal) -> tuple[str, str]:
    """Return what an empty list says, and what may be done or expected."""
    if address.filters:
        return "No approval fits.", "Remove a filter to see more."
    if address.tab == "decided":
        return "Nothing was decided yet.", ""
    if address.tab == "unknown":
        return "No outcome is unknown.", "A call whose worker was lost while it ran stands here, until a person says what happened."
    if address.tab == "mine" and "approvals" not in person.scopes:
        others = " What waits for others stands under All." if "all" in tabs_of(person) else ""
        return "Nothing waits.", f"Your role does not decide.{others}"
    return "Nothing waits.", "New calls appear here by themselves."


def _in_words(name: str, value: str, choices: dict[str, list[Any]], now: datetime) -> str:
    """Return a filter as people read it."""
    match name:
        case "due":
            return "Due soon"
        case "kind":
            return KINDS[value].group if value in KINDS else value
        case "q":
            return f"“{value}”"
        case "person":
            return f"Last decided by {dict(choices[name]).get(value, 'somebody else')}"
        case "day":
            day = datetime.combine(date.fromisoformat(value), time(), UTC)
            return day_of(day, now) if day <= now else value
    words = dict(choices[name]).get(value, tool_in_words(value) if name == "tool" else value)
    return f"{name.capitalize()}: {words}"


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
