"""A verified export, as the source of what may be cut: the ends of its chains, how far they are sealed, and the file's hash."""

import hashlib
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from models.audit import verifying
from models.audit.seal_key import PublicKey
from models.audit.seals import SEALS, heads_of
from models.audit.verifying import Act, AuditReport, Item

ACTS = 10_000
"""Most acts, about, that go behind one anchor, and that one transaction deletes."""
CHAINS = 250
"""Most chains that one anchor names."""

_TABLES = """
    CREATE TABLE own (seq INTEGER PRIMARY KEY, hash TEXT);
    CREATE TABLE part (chain TEXT, seq INTEGER, hash TEXT, acts INTEGER);
    CREATE TABLE sealed (chain TEXT PRIMARY KEY, seq INTEGER, hash TEXT, seal INTEGER) WITHOUT ROWID;
"""
_PARTS = """
    SELECT part.chain, part.seq, part.hash, part.acts FROM part JOIN sealed ON sealed.chain = part.chain AND sealed.seq >= part.seq
    ORDER BY part.chain, part.seq
"""
_SEAL = """
    INSERT INTO sealed VALUES (?, ?, ?, ?) ON CONFLICT (chain) DO UPDATE
    SET seq = excluded.seq, hash = excluded.hash, seal = excluded.seal WHERE excluded.seal > seal
"""


class Part(NamedTuple):
    """The beginning of a session's chain, up to an act."""

    chain: str
    last: int
    hash: str
    acts: int
    """Those since the part before."""


class SealedHead(NamedTuple):
    """The newest head of a chain that a seal names."""

    seq: int
    hash: str
    seal: int
    """The seal's number in the workspace's chain."""


class NotIntact(Exception):
    """The export is not intact, or of another workspace. `report` says why."""

    def __init__(self, report: AuditReport) -> None:
        self.report = report
        super().__init__(f"the export is not intact: {report.problems_found} problem(s)")


class VerifiedExport:
    """What an export holds of acts from before a time. A temporary SQLite database, so that there may be millions."""

    def __init__(self, file: Path, keys: list[PublicKey], before: datetime, signed_since: datetime | None) -> None:
        """Read and verify the file. Raises NotIntact, or NoExport for another file."""
        self.before = before
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(_TABLES)
        self._last: tuple[str, int, str, datetime] | None = None
        self._since = 0
        """The number of the chain's act before the part that is read."""
        self._parts: list[Part] = []
        self._own_ended = False
        self._db.execute("BEGIN")
        with file.open("rb") as content:
            self.sha256 = hashlib.file_digest(content, "sha256").hexdigest()
            """Of the whole file, in hex."""
            content.seek(0)
            lines = TextIOWrapper(content, encoding="utf-8")
            self.workspace_id, items = verifying.read_export(iter(lines))
            self.report = verifying.verify(self.workspace_id, self._passed(items), keys, signed_since=signed_since)
        if not self.report.intact or self.report.signed is None:
            raise NotIntact(self.report)
        self.signed_head = self.report.signed

    def parts(self) -> Iterator[list[Part]]:
        """Yield the sealed parts of sessions' chains whose acts are all old, as many at once as one anchor names."""
        batch: list[Part] = []
        for part in map(Part._make, self._db.execute(_PARTS)):
            full = len(batch) == CHAINS or sum(each.acts for each in batch) + part.acts > ACTS
            if batch and (full or batch[-1].chain == part.chain):
                yield batch
                batch = []
            batch.append(part)
        if batch:
            yield batch

    def own_hash(self, seq: int) -> str | None:
        """Return the hash of an act of the workspace's own chain that is old and under a signed seal; None for another act."""
        if seq >= self.signed_head.seq:
            return None
        row = self._db.execute("SELECT hash FROM own WHERE seq = ?", (seq,)).fetchone()
        return str(row[0]) if row else None

    def sealed_head(self, chain: str) -> SealedHead | None:
        """Return the newest head of a session's chain that a seal names."""
        row = self._db.execute("SELECT seq, hash, seal FROM sealed WHERE chain = ?", (chain,)).fetchone()
        return SealedHead._make(row) if row else None

    def _passed(self, items: Iterator[Item]) -> Iterator[Item]:
        """Pass the items on to the verification, and note what they say."""
        for item in items:
            if isinstance(item, Act):
                self._take(item.row)
            yield item
        self._end()

    def _take(self, row: dict[str, Any]) -> None:
        if row["chain"] != self.workspace_id:
            if self._last is None or self._last[0] != row["chain"]:
                self._end()
                self._since = row["seq"] - 1
            elif row["seq"] - 1 - self._since >= ACTS:
                self._part()
            self._last = row["chain"], row["seq"], row["hash"], row["at"]
            return
        self._own_ended = self._own_ended or row["at"] >= self.before
        if not self._own_ended:
            self._db.execute("INSERT OR IGNORE INTO own VALUES (?, ?)", (row["seq"], row["hash"]))
        if row["action"] in SEALS:
            heads = heads_of(row["details"]).items()
            self._db.executemany(_SEAL, ((chain, *head, row["seq"]) for chain, head in heads))

    def _part(self) -> None:
        """End a part of the chain at its last act."""
        assert self._last, "an act was read"
        chain, seq, hash_, _ = self._last
        self._parts.append(Part(chain, seq, hash_, seq - self._since))
        self._since = seq

    def _end(self) -> None:
        """End the chain that was read. Its parts count only if even its last act is old."""
        if self._last is not None:
            self._part()
            if self._last[3] < self.before:
                self._db.executemany("INSERT INTO part VALUES (?, ?, ?, ?)", self._parts)
        self._last, self._parts = None, []
