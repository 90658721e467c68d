"""The groups of a list of approvals: what is due soon, what is no call to run, and the rest by agent, session or tool."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from api.desk import waiting_list
from api.desk.inbox.comparing import FEWEST
from api.desk.inbox.rows import ListedApproval
from api.door.paging import Count, Selection, page
from models.briefing.tool_name import tool_in_words
from models.database.rows import Db
from models.pure.text.relative_time import day_of
from models.session.approval.kinds import KINDS, tool_call
from models.session.approval.row import BEYOND_RUNS, Approval

PAGE = 25
"""Most rows of a page that wait to run and are not due soon. Each other group has as many at most."""
SOON = timedelta(hours=1)
"""A deadline that is nearer is due soon."""
_COUNTED = 1000
"""Waiting calls that are counted by tool: those with the earliest deadlines."""

Axis = Literal["agent", "session", "tool"]
AXES: tuple[Axis, ...] = ("agent", "session", "tool")
_COLUMNS: dict[Axis, str] = {"agent": "agent_id", "session": "session_id", "tool": "tool"}


@dataclass(frozen=True)
class Several:
    """Waiting calls of one tool that a table compares."""

    tool: str
    name: str
    """The tool as people read it."""
    number: Count
    query: dict[str, str]
    """What names the calls in the address of their table: the tool, and the filter of the group."""


@dataclass
class Group:
    """Rows under one heading."""

    key: str
    """Tells the groups of a page apart, and is the same when the page is drawn again."""
    heading: str
    rows: list[ListedApproval] = field(default_factory=list)
    is_urgent: bool = False
    names: str = ""
    """What the heading names, so that the rows need not: `agent`, `session`, `tool` or `kind`."""
    more: dict[str, str] = field(default_factory=dict)
    """The filter that shows the rest of the group; empty if all of it is here."""
    several: list[Several] = field(default_factory=list)


@dataclass(frozen=True)
class WaitingPage:
    """The approvals of one page of a list, in the order of its groups."""

    soon: Sequence[Approval]
    beyond: Sequence[Approval]
    rest: Sequence[Approval]
    after: str | None
    """The cursor of the next page."""
    is_soon_cut: bool
    is_beyond_cut: bool

    @classmethod
    def of(cls, db: Db, selection: Selection[Approval], now: datetime, cursor: str | None) -> "WaitingPage":
        """Return a page. Later pages have only calls that wait to run and are not due soon."""
        until = now + SOON
        due, later = "expires_at < %(soon_until)s", "expires_at >= %(soon_until)s"
        rest = selection.where(f"{tool_call.KIND.sql} AND {later}", soon_until=until)
        rows, after = page(db, rest, waiting_list.ORDER, PAGE, cursor)
        if cursor:
            return cls((), (), rows, after, is_soon_cut=False, is_beyond_cut=False)
        end = f"ORDER BY expires_at, id LIMIT {PAGE + 1}"
        soon = selection.where(due, soon_until=until).select(db, end)
        beyond = selection.where(f"{BEYOND_RUNS} AND {later}", soon_until=until).select(db, end)
        return cls(soon[:PAGE], beyond[:PAGE], rows, after, len(soon) > PAGE, len(beyond) > PAGE)

    @property
    def all(self) -> list[Approval]:
        """All approvals of the page."""
        return [*self.soon, *self.beyond, *self.rest]

    def groups(self, rows: Sequence[ListedApproval], axis: Axis) -> list[Group]:
        """Return the groups of the page's rows, which are those of `all`. Empty groups are left out."""
        soon = Group("soon", "Due soon", is_urgent=True, more={"due": "soon"} if self.is_soon_cut else {})
        ranked_kinds = sorted(KINDS.values(), key=lambda kind: kind.group_rank)
        kinds = {kind.name: Group(kind.name, kind.group, is_urgent=True, names="kind") for kind in ranked_kinds if kind.group}
        for name, group in kinds.items():
            group.more = {"kind": name} if self.is_beyond_cut else {}
        rest: dict[str, Group] = {}
        heading, soon_ids = _HEADINGS[axis], {row.id for row in self.soon}
        for row in rows:
            if row.approval.id in soon_ids:
                soon.rows.append(row)
            elif row.approval.kind in kinds:
                kinds[row.approval.kind].rows.append(row)
            else:
                key = getattr(row.approval, _COLUMNS[axis]) or row.approval.thread_id
                rest.setdefault(key, Group(key, heading(row), names=axis)).rows.append(row)
        groups = [group for group in (soon, *kinds.values(), *rest.values()) if group.rows]
        _name_apart(groups, axis)
        return groups


def _name_apart(groups: Sequence[Group], axis: Axis) -> None:
    """Give groups of one heading different ones: agents of one name by their session, sessions of one title by their agent.

    What then still has one heading is counted.
    """
    if axis != "tool":
        other = _HEADINGS["session" if axis == "agent" else "agent"]
        for group in _alike(groups):
            if group.names == axis:
                group.heading = f"{group.heading} · {other(group.rows[0])}"
    numbers: Counter[str] = Counter()
    for group in _alike(groups):
        numbers[group.heading] += 1
        if number := numbers[group.heading] - 1:
            group.heading = f"{group.heading} ({number + 1})"


def _alike(groups: Sequence[Group]) -> list[Group]:
    """Return the groups whose heading another one has as well."""
    counts = Counter(group.heading for group in groups)
    return [group for group in groups if counts[group.heading] > 1]


_HEADINGS: dict[Axis, Callable[[ListedApproval], str]] = {
    "agent": lambda row: row.agent.rpartition(" › ")[2],
    "session": lambda row: row.session or "A session without a title",
    "tool": lambda row: tool_in_words(row.approval.tool),
}


def by_day(rows: Sequence[ListedApproval], now: datetime) -> list[Group]:
    """Return decided approvals by the day of their decision."""
    days: dict[str, Group] = {}
    for row in rows:
        at = row.approval.decided_at or row.approval.expires_at
        days.setdefault(f"{at:%Y-%m-%d}", Group(f"{at:%Y-%m-%d}", day_of(at, now))).rows.append(row)
    return list(days.values())


def add_several(db: Db, mine: Selection[Approval], groups: Sequence[Group], axis: Axis) -> None:
    """Tell each group which of its tools has so many calls that the person may decide that a table of them is worth it.

    `mine`: the approvals that wait for the person.
    """
    column = _COLUMNS[axis]
    columns = list(dict.fromkeys(("tool", column)))
    counts = mine.where(tool_call.KIND.sql).counts_of(
        db, columns, "ORDER BY expires_at LIMIT %(most_counted)s", most_counted=_COUNTED
    )
    of_key = {group.key: group for group in groups}
    for key, number in counts.items():
        group = of_key.get(str(key[-1]))
        if group is not None and number >= FEWEST:
            place: dict[str, str] = {} if axis == "tool" else {axis: str(key[-1])}
            group.several.append(Several(key[0], tool_in_words(key[0]), Count(min(number, 100)), {"tool": key[0], **place}))
