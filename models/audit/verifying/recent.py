"""Reads the newest acts of a workspace in the order of `walk`, from a seal on. So a page verifies any audit in the same time.

Older acts are left out. The seal at the beginning has to have a good signature, as any other; its hash covers all acts of the
workspace's chain before it, but nobody looks whether they are still there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count, takewhile
from typing import Any

from models.audit.acts import GENESIS
from models.audit.seals import SEALED, heads_of
from models.audit.verifying.walk import Head, Item, walk_from
from models.database.rows import Db
from models.database.transactions import transaction

MOST = 2_000
"""Acts after the seal at the beginning, at most, unless it is the newest seal."""
MOST_UNSEALED = 5_000
"""Acts after the newest seal, at most: with more, a page verifies nothing. They take 0.4 s of a request's CPU time."""


@dataclass(frozen=True)
class Beginning:
    """Where the verification of the newest acts begins."""

    seal: int
    """The number of the seal in the workspace's chain."""
    at: datetime
    heads: dict[str, Head]
    """By chain: the last act that is left out."""

    @classmethod
    def of(cls, workspace_id: str) -> "Beginning | None":
        """Return where to begin; None without a seal among the newest acts, as after a long pause of the sweep that seals."""
        with transaction(workspace_id) as db:
            seals = db.rows(_NEWEST_SEALS, workspace=workspace_id, sealed=SEALED, most=MOST)
            if not seals or _count_since(db, seals[0][1], MOST_UNSEALED) > MOST_UNSEALED:
                return None
            seal, at = _first(db, seals)
            lengths: dict[str, int] = {}
            for (details,) in db.rows(_DETAILS, workspace=workspace_id, seal=seal, sealed=SEALED):
                for chain, (length, _) in heads_of(details).items():
                    lengths[chain] = min(length, lengths.get(chain, length))
            chains = sorted({chain for (chain,) in db.rows(_GREW, at=at, workspace=workspace_id)} | set(lengths))
            before = [lengths.get(chain, _ALL) - 1 for chain in chains]
            rows = db.rows(_BEFORE, chains=chains, before=before, at=at) if chains else []
            heads = {chain: Head(chain, seq or 0, hash_ or GENESIS) for chain, seq, hash_ in rows}
            own = db.rows(_BEFORE_SEAL, workspace=workspace_id, seal=seal)[-1]
            return cls(seal, at, heads | {workspace_id: Head(workspace_id, *own)})

    def walk(self, workspace_id: str) -> Iterator[Item]:
        """Yield the acts from the beginning on, and the heads of their chains."""
        yield from walk_from(workspace_id, list(self.heads.values()))


def _first(db: Db, seals: Sequence[Any]) -> tuple[int, datetime]:
    """Return the seal to begin with: the newest, or one before with at most `MOST` acts behind it."""
    place = 0
    for other in takewhile(lambda other: other < len(seals), (2**n for n in count())):
        if _count_since(db, seals[other][1], MOST) > MOST:
            break
        place = other
    return seals[place][0], seals[place][1]


def _count_since(db: Db, since: datetime, most: int) -> int:
    """Return how many acts are later; `most` + 1 if there are more than `most`."""
    count: int = db.value(_COUNT, since=since, most=most + 1)
    return count


_ALL = 2**62
_NEWEST_SEALS = """
    SELECT seq, at FROM (
        SELECT seq, at, action FROM audit WHERE chain = %(workspace)s ORDER BY seq DESC LIMIT %(most)s
    ) newest WHERE action = %(sealed)s ORDER BY seq DESC
"""
_DETAILS = "SELECT details FROM audit WHERE chain = %(workspace)s AND seq >= %(seal)s AND action = %(sealed)s"
_COUNT = "SELECT count(*) FROM (SELECT FROM audit WHERE at > %(since)s LIMIT %(most)s) newest"
_GREW = "SELECT DISTINCT chain FROM audit WHERE at > %(at)s AND chain <> %(workspace)s"
# A workspace's chain begins with an act that is no seal. If the act before is cut, the seal itself is left out.
_BEFORE_SEAL = """
    SELECT seq, encode(hash, 'hex') FROM audit WHERE chain = %(workspace)s AND seq <= %(seal)s ORDER BY seq DESC LIMIT 2
"""
# The last act before the first one that is sealed or written after the beginning. Of a chain that was cut there: the first act.
_BEFORE = """
    SELECT asked.chain, coalesce(last.seq, oldest.seq), encode(coalesce(last.hash, oldest.hash), 'hex')
    FROM unnest(%(chains)s::text[], %(before)s::bigint[]) asked (chain, most)
    LEFT JOIN LATERAL (
        SELECT seq, hash FROM audit WHERE chain = asked.chain AND seq <= asked.most AND at <= %(at)s ORDER BY seq DESC LIMIT 1
    ) last ON true
    LEFT JOIN LATERAL (
        SELECT seq, hash FROM audit WHERE chain = asked.chain ORDER BY seq LIMIT 1
    ) oldest ON last.seq IS NULL AND oldest.seq > 1
"""
