"""Verifies the seals' signatures, and that every seal is signed from a given time on."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from models.audit.acts import time_text
from models.audit.seal_key import PublicKey
from models.audit.seals import SignedHead, is_signed
from models.audit.verifying.verdict import AuditReport
from models.audit.verifying.walk import Act


@dataclass
class Signing:
    """The seals, up to the one that was read last.

    If a key is known, every seal must have a good signature. An unsigned seal is excused only if it and all acts that it covers are
    older than `since`: an intruder who backdates a seal would have to backdate the acts as well.
    """

    report: AuditReport
    keys: dict[str, PublicKey]
    """The keys whose signatures count, by id."""
    since: datetime | None
    """The time from which every seal is signed, according to the caller."""
    strangers: set[str] = field(default_factory=set)
    """Ids of unknown keys that signed."""
    excused: int = 0
    """The last unsigned seal that `since` excuses."""
    excused_seals: int = 0
    newest_at: datetime | None = None
    """The latest time of any act of the workspace's chain so far."""
    _unsigned: list[int] = field(default_factory=list)
    """The unsigned seals since the last good signature: the first seq, the last seq, and their number."""

    def act(self, at: datetime) -> None:
        """Record the time of the workspace's next act."""
        self.newest_at = max(self.newest_at or at, at)

    def seal(self, act: Act, named_key: Any) -> bool:
        """Verify the next seal, whose act names the key `named_key`. Returns True if its signature is good."""
        chain, seq, head = self.report.workspace_id, act.row["seq"], act.row["hash"]
        key_id, signature = act.signature or (None, "")
        if key_id and is_signed(act.row, act.signature, self.keys.values()):
            self._end()
            self.report.signed = SignedHead(chain, seq, head, act.row["at"], key_id, signature)
            return True
        if key_id is None and named_key is None:
            self._add(seq)
        elif key_id is None:
            self.report.add("signature", chain, seq, seq, f"the signature of act {seq} of {chain} is missing")
        elif key_id in self.keys:
            self.report.add("signature", chain, seq, seq, f"act {seq} of {chain} was not signed by {key_id}, as it says")
        else:
            if self.keys and key_id not in self.strangers:
                message = f"act {seq} of {chain} is signed by {key_id}, a key that is not known here"
                self.report.add("signature", chain, seq, seq, message)
            self.strangers.add(key_id)
        return False

    def excuses(self, at: datetime) -> bool:
        """True if an act of this time need not be signed."""
        return self.since is not None and at < self.since

    def end(self, acts: int) -> None:
        """Finish, after the last of the workspace's `acts`."""
        if self.report.signed or not self.keys:
            self._end()
        else:
            chain = self.report.workspace_id
            message = f"no seal of {chain} has a good signature, although a key is known here: all of it can be made anew"
            self.report.add("unsigned", chain, 1, acts, message)

    def notes(self) -> Iterator[str]:
        """Yield notes for the reader of the report."""
        if self.since:
            yield (
                f"Signed since {time_text(self.since)}, as the verification was told. {self.excused_seals} older seals without a"
                " signature were excused: whoever could write to the database until then can have made those acts."
            )
        if self.report.seals and not self.keys:
            yield "Signatures were not checked: no public key is known here. Who can write to the database can make all of it anew."

    def _add(self, seq: int) -> None:
        if not self.keys:
            return
        if self.newest_at and self.excuses(self.newest_at):
            self.excused, self.excused_seals = seq, self.excused_seals + 1
            return
        first, _, count = self._unsigned or (seq, seq, 0)
        self._unsigned = [first, seq, count + 1]

    def _end(self) -> None:
        """Report the unsigned seals since the last good signature."""
        if self._unsigned:
            first, last, count = self._unsigned
            chain = self.report.workspace_id
            message = (
                f"{count} seal(s) of {chain}, act {first} to act {last}, have no signature, although a key is known here: what they"
                " speak of can have been made anew. If there was no key yet, say since when there is one: --signed-since"
            )
            self.report.add("unsigned", chain, first, last, message)
            self._unsigned = []
