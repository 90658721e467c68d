"""psycopg's connection, with an exchange of its own: many statements in one message, each prepared when it is first seen.

psycopg's pipeline sends each statement by itself, and a Flush behind the last Sync, after which Postgres counts a client that
says nothing no more as idle in its transaction. An exchange is one message that ends with Sync, for a fraction of the CPU. It
leans on psycopg's lower layers, so the version is pinned; nothing else here knows them.
"""

import itertools
import re
import secrets
import select
import sys
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import abc, pq
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import fetch_many, send
from psycopg.waiting import Ready, Wait

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
_Key = tuple[bytes, tuple[int, ...]]
"""What a statement is prepared by: its text, and the types of its values."""
_Dumped = tuple[_Key, Sequence[Buffer | None] | None, Sequence[int] | None]

# As plain numbers, since enumerations are slow to reckon with.
_EVENTS = {int(Wait.R): select.POLLIN, int(Wait.W): select.POLLOUT, int(Wait.RW): select.POLLIN | select.POLLOUT}
_READY = {0: 0, select.POLLIN: int(Ready.R), select.POLLOUT: int(Ready.W), select.POLLIN | select.POLLOUT: int(Ready.RW)}
_BOTH = select.POLLIN | select.POLLOUT
_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_TO_BE_PREPARED_ANEW = ("0A000", "26000")
"""What Postgres says if a prepared statement's table has changed, or if there is no such statement any more."""
_PLACE = re.compile(r"%\((?P<name>\w+)\)s|%%")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that can exchange many statements at once."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn)
        self._transformer: abc.Transformer | None = None
        self._names: dict[_Key, bytes] = {}
        """Of the statements that are prepared here."""
        self._numbers = itertools.count()
        self._prefix = secrets.token_hex(4).encode()
        """No other connection's, should a proxy have both speak with one server."""

    def exchange(self, statements: Sequence[tuple[str, dict[str, Any]]]) -> list[Rows]:
        """Run statements, each with its values, in one round trip: the rows of each. The first that fails ends the exchange.

        Errors: psycopg's. Whoever is killed meanwhile, or out of time, leaves a connection that is closed; so does a statement
        that would have to be prepared anew.
        """
        transformer = self._transformer = self._transformer or Transformer(self)
        dumped = [_dumped(transformer, text, values) for text, values in statements]
        try:
            self.pgconn.enter_pipeline_mode()
            sent = [key for each in dumped for key in self._send(*each)]
            self.pgconn.pipeline_sync()
            results = self.wait(_results(self.pgconn, len(sent)))
            if self.pgconn.status == pq.ConnStatus.OK:
                self.pgconn.exit_pipeline_mode()
        except BaseException:
            self.pgconn.finish()
            raise
        failed = next((result for result in results if result.status not in _DONE), None)
        if failed is not None:
            raise self._failure(failed, sent, results)
        return [_rows(transformer, result) for key, result in zip(sent, results, strict=True) if key is None]

    def _send(self, key: _Key, values: Sequence[Buffer | None] | None, formats: Sequence[int] | None) -> list[_Key | None]:
        """Put a statement into the message. For each result it will have: the key that it is prepared by there, or None."""
        sent: list[_Key | None] = [None]
        if key not in self._names:
            self._names[key] = b"assent_%s_%d" % (self._prefix, next(self._numbers))
            self.pgconn.send_prepare(self._names[key], *key)
            sent = [key, None]
        self.pgconn.send_query_prepared(self._names[key], values, formats)
        return sent

    def _failure(self, failed: pq.abc.PGresult, sent: list[_Key | None], results: list[pq.abc.PGresult]) -> psycopg.Error:
        """What Postgres says against a statement; what stood behind that was not prepared."""
        for key, result in zip(sent, results, strict=False):  # fewer results, if the server ended with the failure
            if key is not None and result.status not in _DONE:
                del self._names[key]
        error = error_from_result(failed)
        if error.sqlstate in _TO_BE_PREPARED_ANEW:
            self.pgconn.finish()
        return error

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        """As psycopg does for what it prepared by itself. None means everything on the connection, ours too."""
        if name is None:
            self._names.clear()
        yield from super()._deallocate(name)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return self.pgconn.transaction_status == pq.TransactionStatus.IDLE

    @property
    def has_failed(self) -> bool:
        """Whether one is open that can only be rolled back."""
        return self.pgconn.transaction_status == pq.TransactionStatus.INERROR

    def hung_up(self) -> bool:
        """Whether the server has ended this idle connection. It would have said so, which is looked at without a word to it."""
        try:
            for _ in ("its last words", "the end behind them"):
                self.pgconn.consume_input()
        except psycopg.OperationalError:
            return True
        return self.closed


class Cooperating(Connection):
    """For where gevent has taken the place of threads."""

    def wait(self, gen: PQGen[T], interval: float = 0, timeout: float | None = None) -> T:
        """Go through the steps of talking with the server. Where it lets us wait, others run; whoever is killed then closes it."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            wanted = next(gen)
            while True:
                ready = self._ready(wanted)
                if not ready:
                    self._let_others_run(wanted)
                    ready = self._ready(wanted) or int(Ready.R)  # of a broken socket: reading will say how
                wanted = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result
        except psycopg.Error:
            raise
        except BaseException:
            self.pgconn.finish()
            raise

    def _ready(self, wanted: int) -> int:
        """What of that is so already."""
        poll = _system_poll()()
        poll.register(self.pgconn.socket, _EVENTS[wanted])
        found = poll.poll(0)
        return _READY[found[0][1] & _BOTH] if found else 0

    def _let_others_run(self, wanted: int) -> None:
        """Until the socket is ready for that."""
        hub = _hub()()
        watcher = hub.loop.io(self.pgconn.socket, int(wanted))  # by the same numbers: 1 reads, 2 writes
        try:
            hub.wait(watcher)
        finally:
            watcher.close()


def kind() -> type[Connection]:
    """Which connections this process should have."""
    monkey = sys.modules.get("gevent.monkey")
    return Cooperating if monkey and monkey.is_module_patched("select") else Connection


@cache
def _hub() -> Any:
    """What gives the thread's event loop."""
    from gevent import get_hub

    return get_hub


@cache
def _system_poll() -> Any:
    """The system's own, which gevent has replaced."""
    from gevent.monkey import get_original

    return get_original("select", "poll")


def _dumped(transformer: abc.Transformer, text: str, values: dict[str, Any]) -> _Dumped:
    """A statement as Postgres takes it."""
    query, names, formats = _numbered(text)
    if not names:
        return (query, ()), None, None
    given = transformer.dump_sequence([values[name] for name in names], formats)
    return (query, transformer.types or ()), given, transformer.formats


@lru_cache(maxsize=1000)
def _numbered(text: str) -> tuple[bytes, tuple[str, ...], list[PyFormat]]:
    """A statement with its places by number, what goes into each, and that psycopg may choose how."""
    numbers: dict[str, int] = {}

    def number(place: re.Match[str]) -> str:
        name = place["name"]
        return f"${numbers.setdefault(name, len(numbers) + 1)}" if name else "%"

    query = _PLACE.sub(number, text)
    return query.encode(), tuple(numbers), [PyFormat.AUTO] * len(numbers)


def _results(pgconn: pq.abc.PGconn, count: int) -> PQGen[list[pq.abc.PGresult]]:
    """The steps of sending what was put, and of fetching so many results, or those before the server's end."""
    found: list[pq.abc.PGresult] = []
    try:
        yield from send(pgconn)
        while len(found) < count:
            found += yield from fetch_many(pgconn)
        yield from fetch_many(pgconn)  # what answers Sync
    except psycopg.OperationalError:
        if not found or found[-1].status in _DONE:
            raise
    return found


def _rows(transformer: abc.Transformer, result: pq.abc.PGresult) -> Rows:
    if result.status == pq.ExecStatus.COMMAND_OK:
        return []
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)
