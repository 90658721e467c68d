"""The sweep that seals the audit: the workspaces that each run seals, and the sweep's memory between runs."""

import logging
import threading
import time
from datetime import datetime, timedelta

from models.audit import alarm, sealing, signer
from models.audit.acts import BEGINNING
from models.audit.coverage import Coverage
from models.audit.sealing import Growth
from models.audit.seals import LATE_SECONDS
from models.audit.signed_heads import InUse
from models.audit.signer import Signer

log = logging.getLogger(__name__)

COMPARE_SECONDS = 3600
"""Pause between two looks at older acts and at all signed heads. A look goes back by twice this time."""


class SealSweep:
    """Seals every chain that grew, at each `run`. Its memory only makes the next run cheaper.

    Each run reads the acts since the last run. The first run begins where the file of heads says, or compares all chains with their
    seals. Once an hour a run looks back further, for acts that were committed late.
    """

    def __init__(self) -> None:
        self.since = BEGINNING
        """The time up to which all acts are sealed, except those of the workspaces in `behind`."""
        self.behind: dict[str, datetime] = {}
        """Workspaces that this sealer left unsealed, and the time from which on. Every run tries them again."""
        self.recovered: datetime | None = None
        """The time from which on the next run must read acts, for workspaces that were behind."""
        self.compared: float | None = None
        self.coverage: dict[str, Coverage] = {}
        self.coverage_since = BEGINNING
        """The time from which on `coverage` knows the seals."""
        self.watch = SealWatch()
        self.stands_aside = False
        """True if the last run left chains to other sealers, for lack of the key, of the file or of a head in it."""
        self._running = threading.Lock()

    @property
    def sealed_until(self) -> datetime | None:
        """The time up to which all acts are sealed, as far as this sealer knows; None before it sealed all."""
        until = min([self.since, *self.behind.values(), *([self.recovered] if self.recovered else [])])
        return None if until == BEGINNING else until

    def run(self) -> int:
        """Seal once. Returns the number of workspaces with new acts.

        A workspace that cannot be sealed now is left for the next run, and does not hold up the others.
        """
        grown = 0
        if not self._running.acquire(blocking=False):
            return grown
        try:
            with signer.signer() as by:
                if not by.problem:
                    grown = self._seal(by)
                self.stands_aside = bool(by.problem or by.aside)
                self.watch.look(by)
        except InUse:
            return 0  # another process is sealing
        finally:
            self._running.release()
        return grown

    def _seal(self, by: Signer) -> int:
        compares = self.compared is None or time.monotonic() - self.compared > COMPARE_SECONDS
        by.since, by.coverage = self._begin(by, compares=compares), self.coverage
        growth = sealing.grown(by.since, self.coverage)
        if by.heads:
            by.heads.begin(growth.read_at)
        by.to_check = self.behind.keys() | set(by.heads.workspace_ids if by.heads and compares else ())
        chains: dict[str, dict[str, int]] = {workspace_id: {} for workspace_id in by.to_check} | growth.chains
        locked = [workspace_id for workspace_id, grew in chains.items() if not self._seal_one(workspace_id, grew, by, growth.until)]
        for workspace_id, reason in by.refusals.items():
            if compares or workspace_id not in self.behind:
                log.critical("AUDIT ALARM: %s is not sealed: %s. See docs/audit.md", workspace_id, reason)
        self._end(by, growth, locked)
        return len(growth.chains)

    def _begin(self, by: Signer, *, compares: bool) -> datetime:
        """Return the time from which on this run reads acts. Forgets the coverage if that does not go back so far."""
        since = self.since
        if by.heads:
            until = by.heads.sealed_until
            since = max(since, until) if until else BEGINNING
        since = min(since, self.recovered or since)
        self.recovered = None
        if compares:
            self.compared = time.monotonic()
            since -= timedelta(seconds=2 * COMPARE_SECONDS)
        if since < self.coverage_since or compares:
            self.coverage.clear()
            self.coverage_since = since
        return since

    def _seal_one(self, workspace_id: str, chains: dict[str, int], by: Signer, until: datetime | None) -> bool:
        """Return False if the workspace is left to the next run."""
        try:
            return sealing.seal(workspace_id, chains, by, None if workspace_id in self.behind else until)
        except Exception as error:  # noqa: BLE001 - one workspace's failure is logged and does not stop the others
            log.error("%s: left for the next sweep (%s)", workspace_id, type(error).__name__)
            self.coverage.pop(workspace_id, None)
            return False

    def _end(self, by: Signer, growth: Growth, locked: list[str]) -> None:
        """Remember how far the acts are sealed now."""
        unsealed_ids = by.refusals.keys() | by.aside.keys()
        recovered = self.behind.keys() - unsealed_ids - set(locked)
        if recovered:
            self.recovered = min(self.behind.pop(workspace_id) for workspace_id in recovered)
        for workspace_id in unsealed_ids:
            self.behind.setdefault(workspace_id, by.since)
        if locked or not growth.complete:
            return
        self.since = self.coverage_since = growth.read_at
        for coverage in self.coverage.values():
            coverage.forget(growth.read_at - timedelta(seconds=LATE_SECONDS))
        if by.heads:
            by.heads.reach(self.sealed_until or BEGINNING)


class SealWatch:
    """Raises the alarm for workspaces that this process leaves unsealed and that no other process seals."""

    def __init__(self) -> None:
        self.until: datetime | None = None
        """The time up to which acts were looked at."""
        self.problem = ""
        self.stopped: set[str] = set()
        """Workspaces whose alarm was logged."""

    def look(self, by: Signer) -> None:
        """Look at the acts since the last look."""
        if by.problem != self.problem:
            self.problem = by.problem
            if by.problem:
                log.warning("this process seals nothing: %s. See docs/audit.md", by.problem)
        if not by.problem and not by.aside:
            self.until = None
            self.stopped.clear()
            return
        acted, self.until = alarm.acted(self.until)
        for workspace_id, at in acted.items():
            reason = by.problem or by.aside.get(workspace_id)
            problem = alarm.stop(workspace_id, at, reason) if reason else None
            if problem and workspace_id not in self.stopped:
                log.critical("AUDIT ALARM: %s: %s. See docs/audit.md", workspace_id, problem)
            (self.stopped.add if problem else self.stopped.discard)(workspace_id)
