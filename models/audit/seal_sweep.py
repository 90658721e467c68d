"""The sweep that seals the audit: the workspaces that each run seals, and the sweep's memory between runs."""

import logging
import time
from datetime import datetime

from models.audit import seals, signer
from models.audit.signed_heads import InUse
from models.audit.signer import Signer

log = logging.getLogger(__name__)

COMPARE_SECONDS = 3600
"""Pause between two comparisons of all chains with their seals, whatever their acts' times."""


class Sweep:
    """Seals every chain that grew, at each `run`. Its memory only makes the next run cheaper.

    The first run, and one per hour, compares all chains with their seals and all signed heads with the database. The others read
    the acts since the last run.
    """

    def __init__(self) -> None:
        self.since: datetime | None = None
        self.compared = time.monotonic()
        self.refused: set[str] = set()
        """Workspaces that the signer refused. Every run tries them again."""

    def run(self) -> None:
        """Seal once. A workspace that cannot be sealed now is left for the next run, and does not hold up the others."""
        try:
            with signer.signer() as by:
                self._run(by)
        except InUse:
            return  # another process is sealing

    def _run(self, by: Signer) -> None:
        if time.monotonic() - self.compared > COMPARE_SECONDS:
            self.since = None
        known = self.refused
        if self.since is None:
            self.compared, known = time.monotonic(), set()
        growth = seals.grown(self.since)
        to_check = known | set(by.heads.workspace_ids if by.heads and self.since is None else ())
        chains = {workspace_id: [workspace_id] for workspace_id in to_check} | growth.chains
        sealed = [_seal(workspace_id, grew, by) for workspace_id, grew in chains.items()]
        for workspace_id in by.refused.keys() - known:
            log.critical("AUDIT ALARM: %s is not sealed: %s. See docs/audit.md", workspace_id, by.refused[workspace_id])
        recovered, self.refused = known - by.refused.keys(), set(by.refused)
        if recovered:
            self.since = None  # the comparison of all chains finds those that grew meanwhile
        elif all(sealed) and growth.complete:
            self.since = growth.read_at


def _seal(workspace_id: str, chains: list[str], by: Signer) -> bool:
    try:
        return seals.seal(workspace_id, chains, by)
    except Exception as error:  # noqa: BLE001 - one workspace's failure is logged and does not stop the others
        log.error("%s: left for the next sweep (%s)", workspace_id, type(error).__name__)
        return False
