"""Finds the newest acts of a workspace, by the indexes that there are.

No index sorts all acts of a workspace by time, since every insert would pay for it. Two leave out the acts of which there are most.
Among all acts, ever longer spans of time are searched; the BRIN index finds spans.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from api.door.paging import Order, Selection, page, place
from models.audit.acts import FREQUENT, RARE, ROUTINE, TOLD, Audit
from models.database import clock
from models.database.rows import Db

NEWEST: Order[Audit] = Order("audit", (Audit.at, Audit.chain, Audit.seq))
SPANS = [timedelta(seconds=8**n) for n in range(9)]
"""Spans of time in which a page is searched, from a second to half a year: in short steps, so that none takes many times a page."""
_NEWEST_TOLD = f"SELECT at FROM audit WHERE {TOLD} AND at <= %(edge)s ORDER BY at DESC LIMIT 1"  # noqa: S608 - names of our own


def index_of(actions: Collection[str]) -> str:
    """Return the condition of the index that sorts these actions by time; empty if none does."""
    if not actions or not set(ROUTINE).isdisjoint(actions):
        return ""
    return RARE if set(FREQUENT).isdisjoint(actions) else TOLD


def by_spans(
    db: Db, selection: Selection[Audit], limit: int, cursor: str | None, edge: datetime | None, oldest: datetime | None
) -> tuple[Sequence[Audit], str | None]:
    """Return a page as `page` does, searched in ever longer spans before `edge`, by default the present time.

    No act that `selection` leaves may be older than `oldest`; then all acts are searched at last.
    """
    edge = min(filter(None, (edge, place(NEWEST, cursor)[0] if cursor else None, clock.now(db))))
    for start in _starts(db, edge):
        if oldest and start <= oldest:
            break
        rows, after = page(db, selection.where("at > %(start)s", start=start), NEWEST, limit, cursor)
        if after:
            return rows, after
    return page(db, selection, NEWEST, limit, cursor)


def _starts(db: Db, edge: datetime) -> Iterator[datetime]:
    """Yield where the spans start, the latest first: those before the edge, and those before the newest act that is not routine.

    After a pause these begin where there are acts again, and do not take the whole of a busy time before the pause.
    """
    newest: datetime | None = db.value(_NEWEST_TOLD, edge=edge)
    yield from sorted({end - span for end in (edge, newest) if end for span in SPANS}, reverse=True)
