"""Many statements in one message, and all their results: one round trip to Postgres.

psycopg's own pipeline sends each statement by itself. For a transaction of ten statements this module takes 0.4 times its CPU,
client and server together, which is more than 15 % of a gated cycle (`make bench ARGS=exchange`). It builds on `psycopg.pq`, the
public wrapper of libpq. `tests/rows/test_statements_share_a_round_trip.py` fails when a psycopg release changes what it needs.
"""

import itertools
import re
import secrets
import select
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.types.json import set_json_dumps, set_json_loads

from models.pure.json import codec as json_codec

Rows = list[tuple[Any, ...]]
_Prepared = tuple[bytes, tuple[int, ...]]
"""A prepared statement's SQL, and the types of its values."""

_READABLE = select.POLLIN
_WRITABLE = select.POLLIN | select.POLLOUT
_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_OUTDATED = ("0A000", "26000")
"""SQLSTATEs of a prepared statement whose table has changed, or that the server no longer has."""
_LAST_WORDS = ("FATAL", "PANIC")
"""Severities of the message after which a server closes the connection."""
_PLACEHOLDER = re.compile(r"%\((?P<name>\w+)\)s|%%")


class Statement(NamedTuple):
    """SQL with a placeholder `%(name)s` for each value, and the values by name."""

    sql: str
    values: dict[str, Any]
    then: Callable[[Rows], None] | None = None
    """Called with the statement's rows, once they are there."""


class _Bound(NamedTuple):
    """A statement as libpq takes it."""

    sql: bytes
    types: tuple[int, ...]
    values: Sequence[Any] | None
    formats: Sequence[int] | None


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A psycopg connection with `exchange`. Each statement is prepared on the server when it is first sent, unless `prepares` is
    false: a pooler in transaction mode sends each transaction to another server process."""

    prepares = True

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn)
        self.prepare_threshold = None
        self.names: dict[_Prepared, bytes] = {}
        self.numbers = itertools.count()
        self.prefix = secrets.token_hex(4).encode()
        """Differs between connections, in case a pooler lets several share one server process."""
        set_json_dumps(json_codec.encode, self)
        set_json_loads(json_codec.decode, self)
        self.transformer = Transformer(self)
        self.is_given_up = False
        """True once the server has said that it ends the connection. Its end follows at any time."""
        self.add_notice_handler(self._hear)

    def exchange(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run the statements in order and return the rows of each. The first that fails skips all others.

        Raises psycopg's errors. The connection is closed after an interrupt, a time-out of the network, and a statement that must
        be prepared again; the last raises OperationalError, since another connection can run it.
        """
        bound_statements = [self._bind(statement.sql, statement.values) for statement in statements]
        try:
            self.pgconn.enter_pipeline_mode()
            preparations = [part for statement in bound_statements for part in self._send(statement)]
            self.pgconn.pipeline_sync()
            results = self._receive()
            if not self.closed:
                self.pgconn.exit_pipeline_mode()
        except BaseException:
            self.pgconn.finish()
            raise
        for preparation, result in zip_longest(preparations, results):
            if preparation is not None and (result is None or result.status not in _DONE):
                self.names.pop(preparation, None)
        failed = next((result for result in results if result.status not in _DONE), None)
        if failed is not None:
            raise self._failure(failed)
        if len(results) < len(preparations):
            raise psycopg.OperationalError("the server closed the connection")
        return [self._rows(result) for preparation, result in zip(preparations, results, strict=True) if preparation is None]

    def hung_up(self) -> bool:
        """True if the server has closed this idle connection, or has said that it will. Reads what has arrived; sends nothing."""
        try:
            for _ in ("the server's last message", "the end of the stream"):
                self.pgconn.consume_input()
        except psycopg.OperationalError:
            return True
        self.pgconn.is_busy()  # hands a message that nobody asked for to the handlers of notices
        return self.closed or self.is_given_up

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        self.is_given_up |= notice.severity_nonlocalized in _LAST_WORDS

    @property
    def in_transaction(self) -> bool:
        """True if a transaction is open."""
        return self.pgconn.transaction_status != pq.TransactionStatus.IDLE

    @property
    def has_failed(self) -> bool:
        """True if the open transaction can only be rolled back."""
        return self.pgconn.transaction_status == pq.TransactionStatus.INERROR

    def _bind(self, sql: str, values: dict[str, Any]) -> _Bound:
        query, names, formats = _numbered(sql)
        if not names:
            return _Bound(query, (), None, None)
        dumped = self.transformer.dump_sequence([values[name] for name in names], formats)
        return _Bound(query, self.transformer.types or (), dumped, self.transformer.formats)

    def _send(self, statement: _Bound) -> list[_Prepared | None]:
        """Put the statement into the message. Returns an entry per expected result: a preparation, or None for the statement."""
        if not self.prepares:
            self.pgconn.send_query_params(statement.sql, statement.values, statement.types, statement.formats)
            return [None]
        key = (statement.sql, statement.types)
        parts: list[_Prepared | None] = [None]
        if key not in self.names:
            self.names[key] = b"assent_%s_%d" % (self.prefix, next(self.numbers))
            self.pgconn.send_prepare(self.names[key], *key)
            parts.insert(0, key)
        self.pgconn.send_query_prepared(self.names[key], statement.values, statement.formats)
        return parts

    def _receive(self) -> list[pq.abc.PGresult]:
        """Send the message and return its results up to the Sync; fewer if the server ended the connection after an error."""
        while self.pgconn.flush():
            if _wait(self.pgconn.socket, _WRITABLE) & _READABLE:
                self.pgconn.consume_input()
        results: list[pq.abc.PGresult] = []
        while True:
            try:
                while self.pgconn.is_busy():
                    _wait(self.pgconn.socket, _READABLE)
                    self.pgconn.consume_input()
                result = self.pgconn.get_result()
            except psycopg.OperationalError:
                if not results or results[-1].status in _DONE:
                    raise
                return results
            if result is None:  # the end of one statement's results
                if self.closed:
                    return results
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            else:
                results.append(result)

    def _failure(self, result: pq.abc.PGresult) -> psycopg.Error:
        error = error_from_result(result)
        if error.sqlstate in _OUTDATED:
            self.pgconn.finish()
            return psycopg.OperationalError(
                "a table has changed: another connection prepares the statement again. If this is frequent, a pooler is "
                "in front of the database: set ASSENT_DATABASE_POOLER=true"
            )
        return error

    def _rows(self, result: pq.abc.PGresult) -> Rows:
        if result.status == pq.ExecStatus.COMMAND_OK:
            return []
        self.transformer.set_pgresult(result)
        return self.transformer.load_rows(0, result.ntuples, tuple)


@lru_cache(maxsize=2000)
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...], list[PyFormat]]:
    """Return the SQL with `$1` in place of its first placeholder and so on, the placeholders' names, and their formats."""
    numbers: dict[str, int] = {}

    def number(placeholder: re.Match[str]) -> str:
        name = placeholder["name"]
        return f"${numbers.setdefault(name, len(numbers) + 1)}" if name else "%"

    query = _PLACEHOLDER.sub(number, sql)
    return query.encode(), tuple(numbers), [PyFormat.AUTO] * len(numbers)


def _wait(socket: int, events: int) -> int:
    """Wait for the socket and return its events. Other greenlets run meanwhile if gevent has patched `select`."""
    poll = select.poll()
    poll.register(socket, events)
    [(_, ready)] = poll.poll()
    return ready
