"""Sealing: every few seconds the sealer names the heads of all chains that grew in their workspace's chain, and signs that chain.

Which chains grew is read from the acts alone, and how far they are sealed from the signed seals alone: see
`models.audit.coverage`. So no other row keeps a chain out of the seals. Acts after the last seal are not protected:
`models.audit.verifying` reports their time. Sealing touches no session's row and waits for no lock: if the workspace's row is
locked, the next sweep seals.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from models.audit import seals
from models.audit.acts import time_text
from models.audit.coverage import Coverage
from models.audit.principal import system
from models.audit.seals import LATE_SECONDS, SEALED, Head
from models.audit.signer import Signer
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction

ACTOR = "sweep.seal_audit"

HEADS = 250
"""Chains in one seal: one transaction."""
CHAINS = 20_000
"""Chains that one sweep reads at once, and about the most that it seals."""

# LATERAL and LIMIT force a look-up by key for each row: the planner's statistics of tables that grow this fast are outdated.
_GREW = """
    SELECT chain, workspace_id, max(seq) FROM audit WHERE at > %(since)s AND chain > %(after)s
    GROUP BY chain, workspace_id ORDER BY chain LIMIT %(chains)s
"""
_HEADS = """
    SELECT asked.chain, last.seq, encode(last.hash, 'hex')
    FROM unnest(CAST(%(chains)s AS text[])) AS asked (chain)
    CROSS JOIN LATERAL (SELECT seq, hash FROM audit WHERE chain = asked.chain ORDER BY seq DESC LIMIT 1) last
    ORDER BY asked.chain
"""
_LOCK = "SELECT audit_seq, encode(audit_head, 'hex'), seal_alarm, seal_stopped FROM workspace WHERE id = %(id)s"


@dataclass
class Growth:
    """The chains that grew, and that no seal covers as far as is known."""

    read_at: datetime
    """The database's time before the search."""
    chains: dict[str, dict[str, int]] = field(default_factory=dict)
    """Their lengths, by workspace and chain."""
    complete: bool = True
    """False if more chains grew than one sweep seals."""

    @property
    def until(self) -> datetime | None:
        """The time up to which all acts are sealed once these chains are."""
        return self.read_at - timedelta(seconds=LATE_SECONDS) if self.complete else None


def grown(since: datetime, covered: Mapping[str, Coverage]) -> Growth:
    """Return the chains of all workspaces with acts after `since`, except those that are covered."""
    earliest = since - timedelta(seconds=LATE_SECONDS)
    with transaction(role="system") as db:
        db.write("SET LOCAL statement_timeout = '30s'")
        growth, after, count = Growth(clock.now(db)), "", 0
        while rows := db.rows(_GREW, since=earliest, after=after, chains=CHAINS):
            for chain, workspace_id, seq in rows:
                if not (workspace_id in covered and covered[workspace_id].covers(chain, seq)):
                    growth.chains.setdefault(workspace_id, {})[chain] = seq
                    count += 1
            after = rows[-1][0]
            if len(rows) < CHAINS:
                return growth
            if count >= CHAINS:
                growth.complete = False
                return growth
    return growth


def seal(workspace_id: str, chains: Mapping[str, int], by: Signer, until: datetime | None = None) -> bool:
    """Seal those of the workspace's chains that grew, `HEADS` per transaction. Returns False if the workspace's row is locked.

    `until` is the time up to which all of the workspace's acts are sealed then; the last seal says so. A workspace that the signer
    does not sign stays unsealed, and is added to `by.refused` or `by.aside`.
    """
    with transaction(workspace_id) as db:
        coverage = by.read(db, workspace_id)
    if coverage is None:
        return True
    uncovered = sorted(chain for chain, seq in chains.items() if chain != workspace_id and not coverage.covers(chain, seq))
    batches = [uncovered[first : first + HEADS] for first in range(0, len(uncovered), HEADS)]
    if not batches and (coverage.is_open or workspace_id in by.to_check):
        batches = [[]]
    return all(_seal(workspace_id, batch, by, until if batch is batches[-1] else None) for batch in batches)


def _seal(workspace_id: str, chains: list[str], by: Signer, until: datetime | None) -> bool:
    act = None
    with transaction(workspace_id) as db:
        # The lock keeps the chain's head still. A second sealer reads the seal of the first.
        locked = db.rows(f"{_LOCK} FOR NO KEY UPDATE SKIP LOCKED", id=workspace_id)
        if not locked:
            return _is_gone(db, workspace_id, by)
        seq, hash_, *alarms = locked[0]
        coverage = by.read(db, workspace_id, (seq, hash_))
        if coverage is None:
            return True
        if any(alarms):
            by.withdraw(db, workspace_id)
        heads = _heads(db, chains, coverage)
        if heads or coverage.is_open:
            by.before_signing(coverage)
            details = {"heads": heads} | ({"until": time_text(until)} if until else {})
            act = seals.write(db, system(ACTOR, workspace_id), SEALED, by.key, details)
    if act:
        coverage.extend(act, heads)
        by.keep_head(coverage, (act["seq"], act["hash"]))
    return True


def _heads(db: Db, chains: list[str], coverage: Coverage) -> dict[str, Head]:
    """Return the heads of those chains that grew beyond their seals."""
    rows = db.rows(_HEADS, chains=chains) if chains else []
    return {chain: (seq, hash_) for chain, seq, hash_ in rows if not coverage.covers(chain, seq)}


def _is_gone(db: Db, workspace_id: str, by: Signer) -> bool:
    """True if the row is not locked but removed. The signer then refuses the workspace."""
    if db.rows("SELECT FROM workspace WHERE id = %(id)s", id=workspace_id):
        return False
    by.refuse(db, workspace_id, "the workspace's row is gone")
    return True
