"""Reads all acts of a workspace in the order of verification and export: first the workspace's chain, which holds the seals, then
each session's chain with the head on its row, then the acts that the workspace's chain has gained meanwhile.

Transactions are small, so that a slow reader holds up nothing. One statement reads acts together with their session's head.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from models.audit.acts import COLUMNS
from models.database.exchange import Rows
from models.database.transactions import transaction

ROWS = 500
"""Acts read at once."""
_MOST_LATER = 5_000
"""Acts of one chain behind a head."""


@dataclass(frozen=True, slots=True)
class Act:
    """A row of the audit."""

    row: dict[str, Any]
    """By `COLUMNS`."""
    signature: tuple[str, str] | None = None
    """For a signed seal: the key's id, and the signature in base64."""
    texts: dict[str, tuple[str, str]] | None = None
    """Salt and text by name. None if an exported file left the texts out."""


@dataclass(frozen=True, slots=True)
class Head:
    """A chain's length and the hash of its last act, from the row that carries the chain's head."""

    chain: str
    seq: int
    hash: str


Item = Act | Head


class _Row(NamedTuple):
    """An act, the signature if the act is a seal, and the head on the chain's row."""

    chain: str
    seq: int
    workspace_id: str
    at: datetime
    principal: str
    address: str | None
    action: str
    subject_id: str
    details: dict[str, Any]
    hash: str
    texts: dict[str, list[str]] | None
    key_id: str | None
    signature: str | None
    audit_seq: int | None
    audit_head: str | None


_COLUMNS = ", ".join(COLUMNS).replace("hash", "encode(hash, 'hex') AS hash")
_TEXTS = """
    CASE WHEN act.details ? 'texts' THEN
        (SELECT jsonb_object_agg(name, jsonb_build_array(encode(salt, 'hex'), text)) FROM audit_text
        WHERE chain = act.chain AND seq = act.seq)
    END AS texts
"""
# Acts first, then a look-up by key for each: LATERAL and LIMIT make the plan independent of the planner's statistics.
_SESSIONS = f"""
    SELECT act.*, {_TEXTS}, NULL AS key_id, NULL AS signature, head.audit_seq, encode(head.audit_head, 'hex')
    FROM (SELECT {_COLUMNS} FROM audit WHERE {{}} ORDER BY chain, seq LIMIT %(rows)s) act
    LEFT JOIN LATERAL (SELECT audit_seq, audit_head FROM session WHERE id = act.chain LIMIT 1) head ON true
    ORDER BY act.chain, act.seq
"""  # noqa: S608 - our own names
_OF_SESSIONS = _SESSIONS.format("(chain, seq) > (%(chain)s, %(seq)s) AND chain <> %(workspace)s")
_LATER = f"""
    SELECT act.*, {_TEXTS}, NULL AS key_id, NULL AS signature, head.audit_seq, encode(head.audit_head, 'hex')
    FROM (
        SELECT later.* FROM unnest(%(chains)s::text[], %(seqs)s::bigint[]) begun (chain, seq) CROSS JOIN LATERAL (
            SELECT {_COLUMNS} FROM audit WHERE chain = begun.chain AND audit.seq > begun.seq ORDER BY audit.seq LIMIT %(rows)s
        ) later
    ) act
    LEFT JOIN LATERAL (SELECT audit_seq, audit_head FROM session WHERE id = act.chain LIMIT 1) head ON true
    ORDER BY act.chain, act.seq
"""  # noqa: S608 - our own names
_OF_ONE = _SESSIONS.format("chain = %(chain)s AND seq > %(seq)s")
_OUTSIDE = f"""
    SELECT act.*, {_TEXTS}, signed.key_id, signed.signature, workspace.audit_seq, encode(workspace.audit_head, 'hex')
    FROM (SELECT {_COLUMNS} FROM audit WHERE chain = %(chain)s AND seq > %(seq)s ORDER BY seq LIMIT %(rows)s) act
    JOIN workspace ON workspace.id = %(chain)s
    LEFT JOIN LATERAL (
        SELECT key_id, signature FROM seal WHERE seal.workspace_id = act.chain AND seal.seq = act.seq LIMIT 1
    ) signed ON true
    ORDER BY act.seq
"""  # noqa: S608 - our own names
_WITHOUT_ACTS = """
    SELECT id, audit_seq, encode(audit_head, 'hex') FROM session
    WHERE id > %(after)s AND (%(only)s = '' OR id = %(only)s) AND audit_seq > 0 AND NOT EXISTS (SELECT FROM audit WHERE chain =
    session.id) ORDER BY id LIMIT %(rows)s
"""
_HEADS = "SELECT id, audit_seq, encode(audit_head, 'hex') FROM session WHERE id = ANY(%(chains)s) ORDER BY id"
_HEAD = "SELECT id, audit_seq, encode(audit_head, 'hex') FROM workspace WHERE id = %(workspace)s"
# A small workspace in a large installation needs time, because the scan passes over other workspaces' acts. The only good plan
# follows the primary key, which has the order already.
_PATIENTLY = ("statement_timeout = '60s'", "enable_sort = off", "enable_seqscan = off", "enable_bitmapscan = off")


def walk(workspace_id: str, only: str | None = None) -> Iterator[Item]:
    """Yield every act and head. `only` limits the sessions to one."""
    seq = yield from _outside(workspace_id, 0)
    yield from _sessions(workspace_id, only)
    after = ""
    while rows := _read(workspace_id, _WITHOUT_ACTS, rows=ROWS, after=after, only=only or ""):
        yield from (Head(*row) for row in rows)
        after = rows[-1][0]
    yield from _outside(workspace_id, seq, to_the_end=True)


def walk_from(workspace_id: str, heads: list[Head]) -> Iterator[Item]:
    """Yield the acts behind these heads, one of which is the workspace's, and the heads of the chains."""
    [start] = [head for head in heads if head.chain == workspace_id]
    others = [head for head in heads if head is not start]
    seq = yield from _outside(workspace_id, start.seq)
    for first in range(0, len(others), ROWS):
        some = others[first : first + ROWS]
        chains, seqs = [head.chain for head in some], [head.seq for head in some]
        last, rows = None, _acts(workspace_id, _LATER, chains=chains, seqs=seqs, rows=_MOST_LATER)
        for row in rows:
            if last is not None and row.chain != last.chain:
                yield from _head(last)
            yield _act(row)
            last = row
        if last is not None:
            yield from _head(last)
        silent = sorted(set(chains) - {row.chain for row in rows})
        yield from (Head(*row) for row in _read(workspace_id, _HEADS, chains=silent))
    yield from _outside(workspace_id, seq, to_the_end=True)


def _outside(workspace_id: str, seq: int, *, to_the_end: bool = False) -> Generator[Item, None, int]:
    """Yield the workspace's own chain after `seq`. Returns the last seq that was read."""
    head = Head(*_read(workspace_id, _HEAD, workspace=workspace_id)[0])
    while rows := _acts(workspace_id, _OUTSIDE, rows=ROWS, chain=workspace_id, seq=seq):
        yield from (_act(row) for row in rows)
        seq, head = rows[-1].seq, Head(workspace_id, rows[-1].audit_seq or 0, rows[-1].audit_head or "")
    if to_the_end:
        yield head
    return seq


def _sessions(workspace_id: str, only: str | None) -> Iterator[Item]:
    chain, seq, last = only or "", 0, None
    query, more = (_OF_ONE, {}) if only else (_OF_SESSIONS, {"workspace": workspace_id})
    while rows := _acts(workspace_id, query, rows=ROWS, chain=chain, seq=seq, **more):
        for row in rows:
            if last is not None and row.chain != last.chain:
                yield from _head(last)
            yield _act(row)
            last = row
        chain, seq = rows[-1].chain, rows[-1].seq
    if last is not None:
        yield from _head(last)


def _head(row: Any) -> Iterator[Head]:
    """Yield the head on the session's row, as read with the chain's last act. A deleted session has none."""
    if row.audit_seq is not None:
        yield Head(row.chain, row.audit_seq, row.audit_head)


def _act(row: Any) -> Act:
    texts = {name: (salt, text) for name, (salt, text) in (row.texts or {}).items()}
    return Act({name: getattr(row, name) for name in COLUMNS}, (row.key_id, row.signature) if row.key_id else None, texts)


def _read(workspace_id: str, sql: str, **values: Any) -> Rows:
    with transaction(workspace_id) as db:
        for setting in _PATIENTLY:
            db.write(f"SET LOCAL {setting}")
        return db.rows(sql, **values)


def _acts(workspace_id: str, sql: str, **values: Any) -> list[_Row]:
    return [_Row(*row) for row in _read(workspace_id, sql, **values)]
