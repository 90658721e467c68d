"""How people decide: how much waits for each, how fast and how evenly they answer, and the ways by which decisions come."""

from dataclasses import dataclass
from typing import Any

from models.database import clock
from models.database.rows import Db
from models.notices.flood import Flood, deciding_people, waiting
from models.operate.insights.newest import NEWEST, allows_in_a_row, newest
from models.operate.insights.report import AskLine, Span, lines, total
from models.operate.insights.titles import titles
from models.people.principal import PersonPrincipal
from models.settings import settings

MOST_PEOPLE = 50
MOST_COUNTED = 100
"""Waiting approvals of one person are counted up to this."""
IN_A_ROW = 50
"""So many allows without a denial are marked: perhaps nobody reads them."""


@dataclass(frozen=True)
class Judge:
    """One person who decides, or did."""

    name: str
    waiting: int
    """Approvals that wait for the person, up to MOST_COUNTED."""
    line: AskLine
    in_a_row: int
    is_flooded: bool


def values(db: Db, _person: PersonPrincipal, span: Span, agent_id: str = "") -> dict[str, Any]:
    """Return the values of the template. Of one agent: only who decided about its calls."""
    by_person = {line.name: line for line in lines(db, span, "person", agent_id)}
    counts = {} if agent_id else waiting(db, deciding_people(db, MOST_PEOPLE), clock.now(db), MOST_COUNTED)
    people = list(dict.fromkeys([*counts, *list(by_person)[:MOST_PEOPLE]]))
    floods = {row.person_id: row for row in Flood.each(db)}
    title_of, in_a_row = titles(db, "person", [*people, *floods]), allows_in_a_row(newest(db, agent_id))
    judges = [
        Judge(
            title_of[person_id],
            counts.get(person_id, 0),
            by_person.get(person_id, AskLine(person_id)),
            in_a_row.get(f"user:{person_id}", 0),
            person_id in floods,
        )
        for person_id in people
    ]
    channels = lines(db, span, "channel", agent_id)
    channel_titles = titles(db, "channel", [line.name for line in channels])
    return {
        "judges": sorted(judges, key=lambda judge: (-judge.waiting, -judge.line.asks, judge.name)),
        "sums": total(by_person.values()),
        "channels": [(channel_titles[line.name], line) for line in channels],
        "failing": db.value(_FAILING),
        "floods": [(title_of[row.person_id], row) for row in floods.values()],
        "flood_size": settings().flood_approvals,
        "newest": NEWEST,
        "many": IN_A_ROW,
        "most_counted": MOST_COUNTED,
    }


_FAILING = "SELECT count(*) FROM channel WHERE error <> '' AND state = 'enabled' AND NOT for_everyone"
