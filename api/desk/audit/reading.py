"""Reads a page of acts. What no index sorts is searched among the newest acts alone, and the page says how far back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from api.door.paging import Order, Selection, cursor_of, page, place
from api.door.requests import EARLIEST, LATEST
from api.v1.audit.listing import NEWEST, by_spans, index_of
from models.audit.acts import TOLD, Audit
from models.database.rows import Db

PAGE = 25
SEARCHED = 10_000
"""Acts that one page searches, routine ones not counted."""
OF_CHAIN: Order[Audit] = Order("audit of a chain", (Audit.chain, Audit.seq))

_BETWEEN = 20
"""Most acts from a vote to the decision that it completes."""
_FOLDED = f"""
    (action <> 'approval.voted' OR NOT EXISTS (
        SELECT FROM audit decided WHERE decided.chain = audit.chain AND decided.seq BETWEEN audit.seq + 1 AND audit.seq + {_BETWEEN}
            AND decided.action = 'approval.decided' AND decided.subject_id = audit.subject_id
            AND decided.principal = audit.principal AND decided.at = audit.at
    ))
"""
"""Leaves out a vote that was the decision as well: one line says both."""
# Each part looks up one row by its key. As EXISTS, Postgres might read whole tables to look things up there.
_HAS_WORDS = """(
    (SELECT prompt ILIKE %(words)s OR tool ILIKE %(words)s FROM approval WHERE id = audit.subject_id)
    OR (SELECT name ILIKE %(words)s FROM tool_call WHERE id = audit.subject_id)
    OR (SELECT title ILIKE %(words)s FROM session WHERE id = audit.chain)
    OR (SELECT bool_or(text ILIKE %(words)s) FROM audit_text WHERE audit_text.chain = audit.chain AND audit_text.seq = audit.seq)
)"""
_OF_AGENT = """(
    subject_id = %(agent)s OR (SELECT agent_id = %(agent)s FROM session WHERE id = audit.chain)
    OR (SELECT agent_id = %(agent)s FROM approval WHERE id = audit.subject_id)
)"""


@dataclass(frozen=True)
class ActQuery:
    """Which acts a page shows."""

    actions: Sequence[str] = ()
    """Only these; empty for all."""
    routine: bool = False
    """True to show routine acts, too, if `actions` is empty."""
    who: Sequence[str] = ()
    """Principals, or one that ends in `:` for all of its kind."""
    agent: str = ""
    chain: str = ""
    subject: str = ""
    words: str = ""
    since: datetime | None = None
    until: datetime | None = None
    """Acts before this time."""

    @property
    def index(self) -> str:
        """The condition of the index that sorts them; empty if none does."""
        return index_of(self.actions) if self.actions else "" if self.routine else TOLD

    @property
    def is_searched(self) -> bool:
        """True if acts are left out that the index has."""
        return not self.index or bool(self.actions or self.who or self.agent or self.subject or self.words)

    @property
    def selection(self) -> Selection[Audit]:
        """The acts."""
        selection = Selection(Audit).where(_FOLDED).equal(chain=self.chain or None, subject_id=self.subject or None)
        if self.index:
            selection = selection.where(self.index)
        if self.actions:
            selection = selection.where("action = ANY(%(actions)s)", actions=list(self.actions))
        if self.who:
            condition = "starts_with(principal, %(who)s)" if self.who[0].endswith(":") else "principal = ANY(%(who)s)"
            selection = selection.where(condition, who=self.who[0] if self.who[0].endswith(":") else list(self.who))
        if self.agent:
            selection = selection.where(_OF_AGENT, agent=self.agent)
        if self.words:
            pattern = "%" + self.words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            selection = selection.where(_HAS_WORDS, words=pattern)
        return self.within(selection)

    def within(self, selection: Selection[Audit]) -> Selection[Audit]:
        """Return the selection limited to the times."""
        return selection.between("at", [(op, at) for op, at in (("gte", self.since), ("lt", self.until)) if at])


@dataclass(frozen=True)
class ActPage:
    """A page of acts."""

    rows: Sequence[Audit] = ()
    after: str | None = None
    """The cursor of the next page; None if there are no more acts."""
    searched_since: datetime | None = None
    """If the page is not full although there are older acts: how far back it looked."""
    votes: dict[tuple[str, str, datetime], Audit] = field(default_factory=dict)
    """The votes that were decisions as well, by subject, principal and time."""


def read(db: Db, query: ActQuery, cursor: str | None) -> ActPage:
    """Return a page. Raises Invalid for a cursor of another list."""
    order = OF_CHAIN if query.chain else NEWEST
    edge = _edge(db, query, place(order, cursor) if cursor else None) if query.is_searched else None
    selection = query.selection
    if edge:
        column = "seq" if query.chain else "at"
        selection = selection.where(f"{column} >= %(edge)s", edge=edge[0])
    if query.chain or query.index:
        rows, after = page(db, selection, order, PAGE, cursor)
    else:
        oldest = max((at for at in (query.since, edge and edge[1]) if at), default=None)
        rows, after = by_spans(db, selection, PAGE, cursor, query.until, oldest)
    votes = _votes(db, rows)
    if after or edge is None:
        return ActPage(rows, after, None, votes)
    start = [query.chain, edge[0]] if query.chain else [edge[1].isoformat(), "", 0]
    return ActPage(rows, cursor_of([order.name, order.descending, *start]), edge[1], votes)


def _edge(db: Db, query: ActQuery, before: tuple[Any, ...] | None) -> tuple[Any, datetime] | None:
    """Return the number, or the time, of the last act that the page searches, and its time; None if the page may search all."""
    if query.chain:
        seq = before[1] if before else _MOST
        rows = db.rows(_EDGE_OF_CHAIN, chain=query.chain, before=seq, searched=SEARCHED)
    else:
        until = min((at for at in (before and before[0], query.until) if at), default=LATEST)
        since = query.since or EARLIEST
        rows = db.rows(_EDGE.format(query.index or TOLD), until=until, since=since, searched=SEARCHED)
    return (rows[0][0], rows[0][1]) if rows else None


def _votes(db: Db, rows: Sequence[Audit]) -> dict[tuple[str, str, datetime], Audit]:
    decisions = [row for row in rows if row.action == "approval.decided"]
    keys = [(row.chain, row.seq - back) for row in decisions for back in range(1, _BETWEEN + 1)]
    votes = db.find(Audit, _BY_KEY, chains=[key[0] for key in keys], seqs=[key[1] for key in keys]) if keys else []
    return {(vote.subject_id, vote.principal, vote.at): vote for vote in votes}


_MOST = 2**62
_EDGE_OF_CHAIN = """
    SELECT seq, at FROM audit WHERE chain = %(chain)s AND seq < %(before)s ORDER BY seq DESC OFFSET %(searched)s LIMIT 1
"""
_EDGE = """
    SELECT at, at FROM audit WHERE {} AND at <= %(until)s AND at >= %(since)s ORDER BY at DESC OFFSET %(searched)s LIMIT 1
"""
_BY_KEY = """
    WHERE action = 'approval.voted' AND (chain, seq) IN (SELECT * FROM unnest(%(chains)s::text[], %(seqs)s::bigint[]))
"""
