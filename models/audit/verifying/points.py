"""Expected hashes of chains, from the seals, until each chain is read. Kept on disk, so that there may be millions."""

import sqlite3
from collections.abc import Iterable, Iterator
from types import TracebackType


class Points:
    """A temporary SQLite database. A small one stays in memory; a large one is a file that SQLite removes at the end."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("CREATE TABLE point (chain TEXT, seq INTEGER, hash TEXT, seal INTEGER)")
        self._db.execute("CREATE TABLE passed (chain TEXT PRIMARY KEY, seq INTEGER, headless INTEGER) WITHOUT ROWID")
        self._db.execute("CREATE TABLE deleted (chain TEXT PRIMARY KEY) WITHOUT ROWID")
        self._db.execute("CREATE TABLE absent (chain TEXT, seq INTEGER, name TEXT)")
        self._db.execute("CREATE TABLE erased (chain TEXT, seq INTEGER, principal TEXT, PRIMARY KEY (chain, seq)) WITHOUT ROWID")
        self._db.execute("CREATE TABLE anchor (chain TEXT, act INTEGER, last INTEGER, hash TEXT, count INTEGER)")
        self._db.execute("CREATE INDEX anchor_chain ON anchor (chain)")
        self._has_index = False
        self._db.execute("BEGIN")

    def __enter__(self) -> "Points":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._db.close()

    def add(self, seal: int, heads: Iterable[tuple[str, int, str]]) -> None:
        """Add the heads that the seal with this number names: chain, length, last hash."""
        self._db.executemany("INSERT INTO point VALUES (?, ?, ?, ?)", ((*head, seal) for head in heads))

    def delete(self, chain: str) -> None:
        """Record that an act reports the deletion of this chain's session."""
        self._db.execute("INSERT OR IGNORE INTO deleted VALUES (?)", (chain,))

    def anchor(self, act: int, cuts: Iterable[tuple[str, int, str, int]]) -> None:
        """Record an anchor by the number of its act: chain, last act that goes, its hash, number of acts."""
        self._db.executemany("INSERT INTO anchor VALUES (?, ?, ?, ?, ?)", ((chain, act, *rest) for chain, *rest in cuts))

    def anchors(self, chain: str) -> dict[int, str]:
        """Return the acts of a chain at which anchors end, with their hashes."""
        return dict(self._db.execute("SELECT last, hash FROM anchor WHERE chain = ?", (chain,)))

    def anchored(self, workspace_id: str) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield the anchors' parts by chain, in their order: chain, act, last act, number of acts, and other anchors among them."""
        yield from self._db.execute(
            "SELECT chain, act, last, count, CASE WHEN chain = ? THEN (SELECT count(DISTINCT act) FROM anchor other"
            " WHERE other.act <= ended.last AND other.act > ended.before) ELSE 0 END"
            " FROM (SELECT *, lag(last, 1, 0) OVER (PARTITION BY chain ORDER BY act) AS before FROM anchor) ended"
            " ORDER BY chain, act",
            (workspace_id,),
        )

    def not_anchored(self) -> Iterator[tuple[str, int, int]]:
        """Yield the ends of anchors that have another hash than a seal says, of chains that were not read: chain, act, anchor."""
        yield from self._db.execute(
            "SELECT DISTINCT anchor.chain, last, act FROM anchor JOIN point ON point.chain = anchor.chain AND point.seq = last"
            " WHERE point.hash <> anchor.hash AND anchor.chain NOT IN (SELECT chain FROM passed) ORDER BY 1, 2"
        )

    def absent(self, chain: str, seq: int, name: str) -> None:
        """Record that a text of an act is missing."""
        self._db.execute("INSERT INTO absent VALUES (?, ?, ?)", (chain, seq, name))

    def erase(self, principal: str, acts: Iterable[tuple[str, int]]) -> None:
        """Record that an act reports the erasure of these acts' texts by this principal."""
        self._db.executemany("INSERT OR IGNORE INTO erased VALUES (?, ?, ?)", ((*act, principal) for act in acts))

    def is_erased(self, chain: str, seq: int) -> bool:
        """True if an act read so far reports the erasure of this act's texts."""
        return self._db.execute("SELECT 1 FROM erased WHERE chain = ? AND seq = ?", (chain, seq)).fetchone() is not None

    def unexplained(self) -> Iterator[tuple[str, int, str]]:
        """Yield the missing texts whose erasure no act records."""
        yield from self._db.execute(
            "SELECT chain, seq, name FROM absent"
            " WHERE (chain, seq) NOT IN (SELECT chain, seq FROM erased) ORDER BY chain, seq, name"
        )

    def erased_by(self) -> Iterator[tuple[str, int, int]]:
        """Yield the principals that erased missing texts, with the number of texts and of acts."""
        yield from self._db.execute(
            "SELECT principal, count(*), count(DISTINCT chain || ' ' || seq) FROM absent JOIN erased USING (chain, seq)"
            " GROUP BY principal ORDER BY principal"
        )

    def of(self, chain: str) -> dict[int, list[tuple[str, int]]]:
        """Return the chain's expected hashes by seq, each with the seal that names it."""
        if not self._has_index:
            self._db.execute("CREATE INDEX point_chain ON point (chain)")
            self._has_index = True
        hashes: dict[int, list[tuple[str, int]]] = {}
        for seq, digest, seal in self._db.execute("SELECT seq, hash, seal FROM point WHERE chain = ?", (chain,)):
            hashes.setdefault(seq, []).append((digest, seal))
        return hashes

    def record_end(self, chain: str, seq: int, *, headless: bool) -> bool:
        """Record that a chain was read to its end; `headless` if it has no session's row. Returns False if it was read before."""
        inserted = self._db.execute("INSERT OR IGNORE INTO passed VALUES (?, ?, ?)", (chain, seq, headless))
        return inserted.rowcount == 1

    def missing(self) -> Iterator[tuple[str, int]]:
        """Yield the chains that seals name and that were not read, with their lengths. Those that were cut are none of them."""
        yield from self._db.execute(
            "SELECT chain, max(seq) FROM point WHERE chain NOT IN (SELECT chain FROM passed) GROUP BY chain"
            " HAVING max(seq) > coalesce((SELECT max(last) FROM anchor WHERE anchor.chain = point.chain), 0) ORDER BY chain"
        )

    def deserted(self) -> Iterator[tuple[str, int, bool]]:
        """Yield the chains without a session's row whose deletion no act reports: id, length, and whether a seal names them."""
        yield from self._db.execute(
            "SELECT chain, seq, EXISTS (SELECT 1 FROM point WHERE point.chain = passed.chain) FROM passed"
            " WHERE headless AND chain NOT IN (SELECT chain FROM deleted) ORDER BY chain"
        )
