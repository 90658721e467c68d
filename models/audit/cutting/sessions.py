"""Anchors for the chains of sessions: those that are archived or deleted, not on hold, and whose acts are all old and sealed."""

from models.audit import anchors, legal_hold
from models.audit.anchors import Cut
from models.audit.cutting.export import Part, VerifiedExport
from models.audit.cutting.terms import Terms
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict

_ARCHIVED = """
    (session.id IS NULL OR session.archived_at IS NOT NULL OR session.archived_through >= session.last_seq)
"""
"""True for a deleted session, one that was archived by a request, and one whose events are all in the archive."""
_STATE = f"""
    SELECT asked.chain, encode(act.hash, 'hex'), {_ARCHIVED},
        {legal_hold.held_sql("act.workspace_id", "asked.chain")},
        (SELECT count(*) FROM audit WHERE chain = asked.chain AND seq > asked.after AND seq <= asked.last)
    FROM unnest(CAST(%(chains)s AS text[]), CAST(%(lasts)s AS bigint[]), CAST(%(afters)s AS bigint[])) AS asked (chain, last, after)
    JOIN audit act ON act.chain = asked.chain AND act.seq = asked.last
    LEFT JOIN session ON session.id = asked.chain
    WHERE asked.last > asked.after ORDER BY asked.chain
"""  # noqa: S608 - names of our own
"""The chains whose last named act is there: its hash, whether the session is archived and on hold, and the number of acts."""


def anchor(export: VerifiedExport, terms: Terms) -> None:
    """Write the anchors for all chains of sessions that may be cut, each in a transaction of its own."""
    for parts in export.parts():
        with transaction(terms.workspace_id) as db:
            head = terms.lock(db)
            legal_hold.refuse(db)
            cuts = _cuts(db, parts)
            act = terms.write(db, head, cuts) if cuts else None
        if act:
            terms.keep(act)


def _cuts(db: Db, parts: list[Part]) -> list[Cut]:
    """Return the parts that may be cut. Raises Conflict if the database has another act than the export."""
    by_chain = {part.chain: part for part in parts}
    ends = anchors.pending(db, db.workspace_id)
    lasts, afters = [part.last for part in parts], [ends.get(part.chain, 0) for part in parts]
    cuts = []
    for chain, hash_, is_archived, is_held, count in db.rows(_STATE, chains=list(by_chain), lasts=lasts, afters=afters):
        part = by_chain[chain]
        if hash_ != part.hash:
            raise Conflict(f"Act {part.last} of {chain} is not the one in the export: run `assent audit verify`.")
        if is_archived and not is_held:
            cuts.append(Cut(chain, part.last, hash_, count))
    return cuts
