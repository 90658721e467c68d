"""Verifies the audit. Takes acts and heads in the order of `walk`, from the database or a file. Reports acts that were changed,
removed, inserted or cut off, and the time from which such a change would go unnoticed.

Memory is bounded: the expected hashes from the seals stay on disk until their chain is read.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.audit.acts import time_text
from models.audit.seal_key import PublicKey
from models.audit.seals import ADOPTED, ANCHORED, SEALS, heads_of, until_of
from models.audit.verifying.chain import VerifiedChain
from models.audit.verifying.cuts import Cuts
from models.audit.verifying.points import Points
from models.audit.verifying.signing import Signing
from models.audit.verifying.texts import Texts
from models.audit.verifying.verdict import AuditReport
from models.audit.verifying.walk import Act, Head, Item

ADOPTIONS = 20
"""Adoptions that the report names: the first ones."""


def verify(
    workspace_id: str,
    items: Iterable[Item],
    keys: Iterable[PublicKey],
    *,
    kept_head: Head | None = None,
    only: str | None = None,
    signed_since: datetime | None = None,
    heads: Mapping[str, Head] | None = None,
) -> AuditReport:
    """Return the report on these acts.

    `keys` are the keys whose signatures count. With at least one, an unsigned seal is a problem, unless it and all acts that it
    covers are older than `signed_since`. `kept_head` is a head of the workspace's chain that was kept elsewhere. `only` names the
    one session whose acts are among the items. `heads`: by chain, the last act that is not among the items, if older ones are left
    out: see `recent`.
    """
    with Points() as points:
        report = AuditReport(workspace_id)
        signing = Signing(report, {key.id: key for key in keys}, signed_since)
        checking = _Checking(report, points, signing, kept_head, only)
        checking.begin_behind(heads)
        for item in items:
            if isinstance(item, Head):
                checking.head(item)
            else:
                checking.act(item)
        return checking.finish()


class _Checking:
    """One verification. The workspace's chain comes first, then the chains of its sessions, then the rest of the workspace's."""

    def __init__(self, report: AuditReport, points: Points, signing: Signing, kept_head: Head | None, only: str | None) -> None:
        self.report = report
        self.outside = VerifiedChain(report.workspace_id, report, {kept_head.seq: [(kept_head.hash, 0)]} if kept_head else {})
        self.inside: VerifiedChain | None = None
        self.points, self.signing, self.only = points, signing, only
        self.kept_seq = kept_head.seq if kept_head else None
        self.texts = Texts(report, points)
        self.cuts = Cuts(report, points)
        self.outside.gaps = self.cuts.gaps
        self.heads: Mapping[str, Head] | None = None
        self.late = False
        """True once a session's chain was read. Seals after that name acts that were not read."""
        self.open = _Open()
        self.until: datetime | None = None
        """The time up to which, by the seals that count, all acts are sealed."""
        self.adoptions: list[str] = []
        self.outside_head: Head | None = None

    def begin_behind(self, heads: Mapping[str, Head] | None) -> None:
        """Leave out the acts up to these heads, by chain. The hash of the next act covers them."""
        self.heads = heads
        if heads:
            self.outside.begin_behind(heads[self.outside.id])

    def act(self, act: Act) -> None:
        """Verify the next act."""
        row = act.row
        self.report.acts += 1
        self.texts.act(act)
        if row["chain"] == self.outside.id:
            self.outside.take(row)
            self._read(act)
            return
        chain = self._inside(row["chain"])
        chain.take(row)
        if row["seq"] > chain.sealed:
            self.report.leave_open(1, row["at"])
            chain.check_sealed(row, self.until)
        chain.check_signed(row, self.signing)

    def head(self, head: Head) -> None:
        """Verify the head on a chain's row, which follows the chain's last act."""
        if head.chain == self.outside.id:
            self.outside_head = head
        else:
            self._inside(head.chain)
            self._leave(head)

    def finish(self) -> AuditReport:
        """Finish and return the report, after the last item."""
        self._leave(None)
        self.outside.end(self.outside_head)
        self.cuts.end()
        self.report.chains += 1
        self.report.head = Head(self.outside.id, self.outside.seq, self.outside.hash)
        for chain, last in self.points.missing():
            self.report.add("missing", chain, 1, last, f"chain {chain} is missing: all of its {last} acts")
        # What was deleted just before the beginning is told by an act that is left out.
        for chain, last, sealed in self.points.deserted() if self.heads is None else ():
            message = f"the session of chain {chain} is gone, and no act says that it was deleted"
            if not sealed:
                message = f"chain {chain} is not a session's, and no seal knows of it: it was put in, or its session was removed"
            self.report.add("session_gone" if sealed else "inserted", chain, 1, last, message)
        self.signing.end(self.outside.seq)
        self.texts.end()
        if self.open.since:
            self.report.leave_open(self.open.acts, self.open.since)
        self.report.notes = list(self._notes())
        return self.report

    def _inside(self, chain: str) -> VerifiedChain:
        """Return the session's chain that is being read. Begins a new one if the chain has changed."""
        if self.inside is None or self.inside.id != chain:
            self._leave(None)
            self.late = True
            self.inside = VerifiedChain(chain, self.report, self.points.of(chain), self.cuts.gaps, self.points.anchors(chain))
            if self.heads and chain in self.heads:
                self.inside.begin_behind(self.heads[chain])
        return self.inside

    def _leave(self, head: Head | None) -> None:
        """Finish the session's chain that was being read."""
        chain, self.inside = self.inside, None
        if chain is None:
            return
        chain.end(head)
        self.report.chains += 1
        if not self.points.record_end(chain.id, chain.seq, headless=head is None):
            self.report.add("inserted", chain.id, 1, chain.seq, f"chain {chain.id} comes twice")

    def _read(self, act: Act) -> None:
        """Read the facts about other chains in an act of the workspace's chain."""
        row = act.row
        details = row["details"] if isinstance(row["details"], dict) else {}
        self.open.add(row["at"])
        self.signing.act(row["at"])
        if row["action"] in SEALS:
            self._seal(act, details)
        elif row["action"] == "session.deleted":
            self.points.delete(row["subject_id"])
            head = [details.get("audit_seq"), details.get("audit_head")]
            self._expect(row["seq"], heads_of({"heads": {row["subject_id"]: head}}))
        if not self.open.acts:
            self.outside.uncovered = None
        else:
            self.outside.check_sealed(row, self.until)

    def _seal(self, act: Act, details: dict[str, Any]) -> None:
        self.report.seals += 1
        self._expect(act.row["seq"], heads_of(details))
        good = self.signing.seal(act, details.get("key_id"))
        if act.row["action"] == ANCHORED and (good or not self.signing.keys):
            self.cuts.add(act.row)
        if good and act.row["action"] == ADOPTED and len(self.adoptions) < ADOPTIONS:
            self.adoptions.append(f"act {act.row['seq']} by {act.row['principal']}, {time_text(act.row['at'])}")
        # From the first signature on, only signed seals count.
        if not self.late and (good or self.report.signed is None):
            self.open = _Open()
            self.until = max(filter(None, (self.until, until_of(details))), default=None)

    def _expect(self, act: int, heads: dict[str, Any]) -> None:
        """Store the heads that the act names."""
        if not self.late:
            self.points.add(act, ((chain, *head) for chain, head in heads.items() if self.only in {None, chain}))

    def _notes(self) -> Iterator[str]:
        report = self.report
        if self.only:
            yield f"Of the sessions, only {self.only} was looked at."
        if not report.seals:
            yield "Nothing is sealed yet."
        elif report.signed and report.signed.seq not in self.outside.points:
            yield "Only a head kept elsewhere shows whether all of it was put back to an earlier state: `assent audit head`."
        if self.adoptions:
            yield f"An operator accepted the audit as it was then: {'; '.join(self.adoptions)}."
        yield from self.cuts.notes(self.kept_seq)
        yield from self.signing.notes()
        yield from self.texts.notes()
        if report.unsealed_since:
            acts = "1 act is" if report.unsealed == 1 else f"{report.unsealed} acts are"
            since = time_text(report.unsealed_since)
            yield f"{acts} not sealed yet, since {since}: what came from then on could still be changed or cut off unnoticed."


@dataclass
class _Open:
    """The workspace's own acts since the last seal."""

    acts: int = 0
    since: datetime | None = None

    def add(self, at: datetime) -> None:
        """Count one act of this time."""
        self.acts += 1
        self.since = min(self.since or at, at)
