"""What signatures cover: the seals of a workspace's chain as they come by, signed or not, and since when all must be signed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from models.audit.acts import spelled
from models.audit.seal_key import PublicKey, signed_words
from models.audit.seals import SignedHead
from models.audit.verifying.verdict import Report
from models.audit.verifying.walk import Act


@dataclass
class Signing:
    """The seals, up to the one that came last.

    Where a key is known, every seal must have a good signature. A seal without one is excused only if it is older than `since`,
    and so are all acts that it speaks of: an intruder who backdates a seal would have to backdate the acts as well.
    """

    report: Report
    keys: dict[str, PublicKey]
    """Those whose signatures count, by id."""
    since: datetime | None
    """From when on everything is signed, as the caller of the verification says."""
    strangers: set[str] = field(default_factory=set)
    """Keys that signed and are not known."""
    excused: int = 0
    """The last seal without a signature that `since` excuses."""
    excused_seals: int = 0
    newest_at: datetime | None = None
    """The latest time of any act of the workspace's chain so far."""
    _unsigned: list[int] = field(default_factory=list)
    """Seals without a signature since the last good one: the first and the last of them, and how many there are."""

    def act(self, at: datetime) -> None:
        """The next act of the workspace's chain."""
        self.newest_at = max(self.newest_at or at, at)

    def seal(self, act: Act, named: Any) -> bool:
        """The next seal; `named` is the key that its act names. Whether its signature is good."""
        chain, seq, head = self.report.workspace_id, act.row["seq"], act.row["hash"]
        key_id, signature = act.signature or (None, "")
        if key_id and key_id == named and self._is_good(key_id, signed_words(chain, seq, head), signature):
            self._end()
            self.report.signed = SignedHead(chain, seq, head, act.row["at"], key_id, signature)
            return True
        if key_id is None and named is None:
            self._add(seq)
        elif key_id is None:
            self.report.found("signature", chain, seq, seq, f"the signature of act {seq} of {chain} is missing")
        elif key_id in self.keys:
            self.report.found("signature", chain, seq, seq, f"act {seq} of {chain} was not signed by {key_id}, as it says")
        else:
            if self.keys and key_id not in self.strangers:
                message = f"act {seq} of {chain} is signed by {key_id}, a key that is not known here"
                self.report.found("signature", chain, seq, seq, message)
            self.strangers.add(key_id)
        return False

    def excuses(self, at: datetime) -> bool:
        """Whether an act of this time need not be signed."""
        return self.since is not None and at < self.since

    def end(self, acts: int) -> None:
        """There are no more acts; the workspace's chain has `acts`."""
        if self.report.signed or not self.keys:
            self._end()
        else:
            chain = self.report.workspace_id
            message = f"no seal of {chain} has a good signature, although a key is known here: all of it can be made anew"
            self.report.found("unsigned", chain, 1, acts, message)

    def notes(self) -> Iterator[str]:
        """What a reader should know beside."""
        if self.since:
            yield (
                f"Signed since {spelled(self.since)}, as the verification was told. {self.excused_seals} older seals without a"
                " signature were excused: whoever could write to the database until then can have made those acts."
            )
        if self.report.seals and not self.keys:
            yield "Signatures were not checked: no public key is known here. Who can write to the database can make all of it anew."

    def _is_good(self, key_id: str, words: bytes, signature: str) -> bool:
        return key_id in self.keys and self.keys[key_id].signed(words, signature)

    def _add(self, seq: int) -> None:
        if not self.keys:
            return
        if self.newest_at and self.excuses(self.newest_at):
            self.excused, self.excused_seals = seq, self.excused_seals + 1
            return
        first, _, count = self._unsigned or (seq, seq, 0)
        self._unsigned = [first, seq, count + 1]

    def _end(self) -> None:
        """Name the seals without a signature that came one after another."""
        if self._unsigned:
            first, last, count = self._unsigned
            chain = self.report.workspace_id
            message = (
                f"{count} seal(s) of {chain}, act {first} to act {last}, have no signature, although a key is known here: what they"
                " speak of can have been made anew. If there was no key yet, say since when there is one: --signed-since"
            )
            self.report.found("unsigned", chain, first, last, message)
            self._unsigned = []
