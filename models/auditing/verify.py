"""Is the audit what was written? Takes acts and heads in the order of `walk`, from the database or from a file, and finds what was
changed, removed, put in, cut off or left out, and since when that could be done unnoticed.

Memory is bounded: what the seals say waits on disk until its chain comes by.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.audit import spelled
from models.auditing.chain import Chain
from models.auditing.points import Points
from models.auditing.verdict import Report
from models.auditing.walk import Act, Head, Item
from models.seal import SEALED, SignedHead
from models.seal_key import PublicKey, signed_words


def verify(
    workspace_id: str, items: Iterable[Item], keys: Iterable[PublicKey], *, kept: Head | None = None, only: str | None = None
) -> Report:
    """What is wrong with these acts, and since when anything could be wrong unnoticed.

    `keys` are those whose signatures count, `kept` is a head of the workspace's chain that was kept elsewhere, `only` is the one
    session whose acts are among the items.
    """
    with Points() as points:
        checking = _Checking(workspace_id, points, {key.id: key for key in keys}, kept, only)
        for item in items:
            if isinstance(item, Head):
                checking.head(item)
            else:
                checking.act(item)
        return checking.done()


class _Checking:
    """One verification. The workspace's chain stands still while those of its sessions come by, and goes on after them."""

    def __init__(self, workspace_id: str, points: Points, keys: dict[str, PublicKey], kept: Head | None, only: str | None) -> None:
        self.report = Report(workspace_id)
        self.outside = Chain(workspace_id, self.report, {kept.seq: [(kept.hash, 0)]} if kept else {})
        self.inside: Chain | None = None
        self.points, self.keys, self.only = points, keys, only
        self.late = False
        """Whether sessions have begun to come by: later seals speak of acts that were not read."""
        self.open = _Open()
        self.outside_head: Head | None = None
        self.unsigned = 0
        """Seals without a signature after the last good one."""
        self.strangers: set[str] = set()
        """Keys that are not known."""

    def act(self, act: Act) -> None:
        """The next act."""
        row = act.row
        self.report.acts += 1
        if row["chain"] == self.outside.id:
            self.outside.take(row)
            self._read(act)
            return
        chain = self._inside(row["chain"])
        chain.take(row)
        if row["seq"] > chain.sealed:
            self.report.leave_open(1, row["at"])

    def head(self, head: Head) -> None:
        """What a chain's own row says, after the chain's last act."""
        if head.chain == self.outside.id:
            self.outside_head = head
        else:
            self._inside(head.chain)
            self._leave(head)

    def done(self) -> Report:
        """The report, after the last item."""
        self._leave(None)
        self.outside.end(self.outside_head)
        self.report.chains += 1
        self.report.head = Head(self.outside.id, self.outside.seq, self.outside.hash)
        for chain, last in self.points.missing():
            self.report.found("missing", chain, 1, last, f"chain {chain} is missing: all of its {last} acts")
        for chain, last, sealed in self.points.deserted():
            said = f"the session of chain {chain} is gone, and no act says that it was deleted"
            if not sealed:
                said = f"chain {chain} is no session's, and no seal knows of it: it was put in, or its session was removed"
            self.report.found("session_gone" if sealed else "inserted", chain, 1, last, said)
        if self.report.signed and self.unsigned:
            first, last = self.report.signed.seq + 1, self.outside.seq
            said = f"the last {self.unsigned} seals of {self.outside.id} are not signed, though older ones are"
            self.report.found("unsigned", self.outside.id, first, last, said)
        if self.open.since:
            self.report.leave_open(self.open.acts, self.open.since)
        self.report.notes = list(self._notes())
        return self.report

    def _inside(self, chain: str) -> Chain:
        """The session's chain that is coming by, begun if it is another than before."""
        if self.inside is None or self.inside.id != chain:
            self._leave(None)
            self.late = True
            self.inside = Chain(chain, self.report, self.points.of(chain))
        return self.inside

    def _leave(self, head: Head | None) -> None:
        """The end of the chain that was coming by."""
        chain, self.inside = self.inside, None
        if chain is None:
            return
        chain.end(head)
        self.report.chains += 1
        if not self.points.passed(chain.id, chain.seq, headless=head is None):
            self.report.found("inserted", chain.id, 1, chain.seq, f"chain {chain.id} comes twice")

    def _read(self, act: Act) -> None:
        """What an act of the workspace's chain says of others."""
        row = act.row
        said = row["details"] if isinstance(row["details"], dict) else {}
        self.open.add(row["at"])
        if row["action"] == SEALED:
            self.report.seals += 1
            self._expect(row["seq"], said.get("heads"))
            self._check_signature(act, said.get("key_id"))
        elif row["action"] == "session.deleted":
            self.points.delete(row["subject_id"])
            self._expect(row["seq"], {row["subject_id"]: [said.get("audit_seq"), said.get("audit_head")]})

    def _expect(self, act: int, heads: Any) -> None:
        """Keep what the act says of chains, as far as it can be read: if it was changed, that was found already."""
        if self.late or not isinstance(heads, dict):
            return
        known = ((chain, *said) for chain, said in heads.items() if isinstance(said, list) and self.only in {None, chain})
        self.points.add(act, (head for head in known if [type(part) for part in head] == [str, int, str]))

    def _check_signature(self, act: Act, named: Any) -> None:
        """`named` is the key by which the act says that it is signed."""
        chain, seq, head = self.outside.id, act.row["seq"], act.row["hash"]
        key_id, signature = act.signature or (None, "")
        good = key_id == named and key_id in self.keys and self.keys[key_id].signed(signed_words(chain, seq, head), signature)
        if key_id and good:
            self.report.signed = SignedHead(chain, seq, head, act.row["at"], key_id, signature)
        elif key_id is None and named is not None:
            self.report.found("signature", chain, seq, seq, f"the signature of act {seq} of {chain} is missing")
        elif key_id in self.keys:
            self.report.found("signature", chain, seq, seq, f"act {seq} of {chain} was not signed by {key_id}, as it says")
        elif key_id:
            if self.keys and key_id not in self.strangers:
                said = f"act {seq} of {chain} is signed by {key_id}, a key that is not known here"
                self.report.found("signature", chain, seq, seq, said)
            self.strangers.add(key_id)
        self.unsigned = 0 if good else self.unsigned + 1
        # From the first signature on, only signed seals count.
        if not self.late and (good or self.report.signed is None):
            self.open = _Open()

    def _notes(self) -> Iterator[str]:
        report = self.report
        if self.only:
            yield f"Of the sessions, only {self.only} was looked at."
        if not report.seals:
            yield "Nothing is sealed yet."
        elif not self.keys:
            yield "Signatures were not checked: no public key is known here. Who can write to the database can make all of it anew."
        elif report.signed is None and not self.strangers:
            yield "No seal is signed: who can write to the database can make all of it anew. Set ASSENT_AUDIT_KEY_FILE."
        elif report.signed and report.signed.seq not in self.outside.points:
            yield "Only a head kept elsewhere shows whether all of it was put back to an earlier state: `assent audit head`."
        if report.unsealed_since:
            acts = "1 act is" if report.unsealed == 1 else f"{report.unsealed} acts are"
            since = spelled(report.unsealed_since)
            yield f"{acts} not sealed yet, since {since}: what came from then on could still be changed or cut off unnoticed."


@dataclass
class _Open:
    """The workspace's own acts since the last seal."""

    acts: int = 0
    since: datetime | None = None

    def add(self, at: datetime) -> None:
        """One more."""
        self.acts += 1
        self.since = min(self.since or at, at)
