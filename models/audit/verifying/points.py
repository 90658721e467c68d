"""What seals say of chains that have not come by yet, and which have. On disk, so that there may be millions."""

import sqlite3
from collections.abc import Iterable, Iterator
from types import TracebackType


class Points:
    """A temporary database: SQLite keeps a small one in memory, a large one in a file that is gone when it is closed."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("CREATE TABLE point (chain TEXT, seq INTEGER, hash TEXT, seal INTEGER)")
        self._db.execute("CREATE TABLE passed (chain TEXT PRIMARY KEY, seq INTEGER, headless INTEGER) WITHOUT ROWID")
        self._db.execute("CREATE TABLE deleted (chain TEXT PRIMARY KEY) WITHOUT ROWID")
        self._db.execute("CREATE TABLE absent (chain TEXT, seq INTEGER, name TEXT)")
        self._db.execute("CREATE TABLE erased (chain TEXT, seq INTEGER, principal TEXT, PRIMARY KEY (chain, seq)) WITHOUT ROWID")
        self._sorted = False
        self._db.execute("BEGIN")

    def __enter__(self) -> "Points":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._db.close()

    def add(self, seal: int, heads: Iterable[tuple[str, int, str]]) -> None:
        """What the workspace's act `seal` says: chains, how long they were, and their last hashes."""
        self._db.executemany("INSERT INTO point VALUES (?, ?, ?, ?)", ((*head, seal) for head in heads))

    def delete(self, chain: str) -> None:
        """An act says that this chain's session was deleted."""
        self._db.execute("INSERT OR IGNORE INTO deleted VALUES (?)", (chain,))

    def absent(self, chain: str, seq: int, name: str) -> None:
        """A text of an act that is not there."""
        self._db.execute("INSERT INTO absent VALUES (?, ?, ?)", (chain, seq, name))

    def erase(self, principal: str, acts: Iterable[tuple[str, int]]) -> None:
        """An act says that this principal erased the texts of these acts."""
        self._db.executemany("INSERT OR IGNORE INTO erased VALUES (?, ?, ?)", ((*act, principal) for act in acts))

    def is_erased(self, chain: str, seq: int) -> bool:
        """Whether an act that came by says that the texts of this one were erased."""
        return self._db.execute("SELECT 1 FROM erased WHERE chain = ? AND seq = ?", (chain, seq)).fetchone() is not None

    def unexplained(self) -> Iterator[tuple[str, int, str]]:
        """Texts that are not there and that no act says were erased."""
        yield from self._db.execute(
            "SELECT chain, seq, name FROM absent"
            " WHERE (chain, seq) NOT IN (SELECT chain, seq FROM erased) ORDER BY chain, seq, name"
        )

    def erased_by(self) -> Iterator[tuple[str, int, int]]:
        """Who erased texts that are not there: the principal, how many texts, of how many acts."""
        yield from self._db.execute(
            "SELECT principal, count(*), count(DISTINCT chain || ' ' || seq) FROM absent JOIN erased USING (chain, seq)"
            " GROUP BY principal ORDER BY principal"
        )

    def of(self, chain: str) -> dict[int, list[tuple[str, int]]]:
        """By seq of the chain: hash, and the act that says so."""
        if not self._sorted:
            self._db.execute("CREATE INDEX point_chain ON point (chain)")
            self._sorted = True
        found: dict[int, list[tuple[str, int]]] = {}
        for seq, digest, seal in self._db.execute("SELECT seq, hash, seal FROM point WHERE chain = ?", (chain,)):
            found.setdefault(seq, []).append((digest, seal))
        return found

    def passed(self, chain: str, seq: int, *, headless: bool) -> bool:
        """A chain has come by, to its end; `headless` if no session's row knows of it. False if it had come by before."""
        inserted = self._db.execute("INSERT OR IGNORE INTO passed VALUES (?, ?, ?)", (chain, seq, headless))
        return inserted.rowcount == 1

    def missing(self) -> Iterator[tuple[str, int]]:
        """Chains that are spoken of and have not come by, and how long they were."""
        yield from self._db.execute(
            "SELECT chain, max(seq) FROM point WHERE chain NOT IN (SELECT chain FROM passed) GROUP BY chain ORDER BY chain"
        )

    def deserted(self) -> Iterator[tuple[str, int, bool]]:
        """Chains without a session that no act says was deleted: how long they are, and whether any act speaks of them."""
        yield from self._db.execute(
            "SELECT chain, seq, EXISTS (SELECT 1 FROM point WHERE point.chain = passed.chain) FROM passed"
            " WHERE headless AND chain NOT IN (SELECT chain FROM deleted) ORDER BY chain"
        )
