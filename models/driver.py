"""psycopg's connection, with an exchange of its own: many statements in one message, and under gevent no wait before a look.

psycopg's pipeline sends each statement by itself, and a Flush behind the last Sync, after which Postgres counts a client that
says nothing no more as idle in its transaction. An exchange is one message and ends with Sync. It leans on psycopg's insides, so
the version is pinned; nothing else here knows them.
"""

import select
import sys
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.generators import send
from psycopg.waiting import Ready, Wait

T = TypeVar("T")
Steps = Generator[Wait, Ready | int, T]
Cursor = psycopg.Cursor[tuple[Any, ...]]

# As plain numbers, since enumerations are slow to reckon with.
_EVENTS = {int(Wait.R): select.POLLIN, int(Wait.W): select.POLLOUT, int(Wait.RW): select.POLLIN | select.POLLOUT}
_READY = {0: 0, select.POLLIN: int(Ready.R), select.POLLOUT: int(Ready.W), select.POLLIN | select.POLLOUT: int(Ready.RW)}
_BOTH = select.POLLIN | select.POLLOUT
_INTERVAL = 0.1
"""Seconds after which a wait looks whether it was interrupted; psycopg's own."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that can exchange many statements at once."""

    def exchange(self, statements: Sequence[tuple[str, dict[str, Any]]]) -> list[Cursor]:
        """Run statements, each with its values, in one round trip: their cursors. The first that fails ends the exchange.

        Errors: psycopg's. Whoever is killed meanwhile, or out of time, leaves a connection that is closed.
        """
        cursors = [self.cursor() for _ in statements]
        with self.lock:
            pipeline = self._pipeline = psycopg.Pipeline(self, _no_lock=True)
            failed: BaseException | None = None
            try:
                self.wait(pipeline._enter_gen())
                self.wait(self._steps(pipeline, cursors, statements))
            except BaseException as error:
                failed = error
                if not isinstance(error, psycopg.Error):
                    self.pgconn.finish()
                raise
            finally:
                pipeline._exit(failed)
                self._pipeline = None
            self.wait(self._prepared.maintain_gen(self))
        return cursors

    def _steps(
        self, pipeline: psycopg.Pipeline, cursors: list[Cursor], statements: Sequence[tuple[str, dict[str, Any]]]
    ) -> Steps[None]:
        for cursor, (text, values) in zip(cursors, statements, strict=True):
            yield from cursor._start_query(text)
            yield from cursor._maybe_prepare_gen(cursor._convert_query(text, values))
        pipeline._enqueue_sync()
        while pipeline.command_queue:
            pipeline.command_queue.popleft()()
        yield from send(self.pgconn)
        yield from pipeline._fetch_gen(flush=False)

    def hung_up(self) -> bool:
        """Whether the server has ended this idle connection. It would have said so, which is looked at without a word to it."""
        try:
            for _ in ("its last words", "the end behind them"):
                self.pgconn.consume_input()
        except psycopg.OperationalError:
            return True
        return self.closed


class Cooperating(Connection):
    """For where gevent has taken the place of threads: what is ready at once does not go through its loop."""

    def wait(self, gen: Steps[T], interval: float = _INTERVAL, timeout: float | None = None) -> T:
        """Go through the steps of an exchange with the server, as far as they go at once; then as psycopg does."""
        try:
            wanted = next(gen)
            while ready := self._ready(wanted):
                wanted = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result
        return super().wait(_rest(gen, wanted), interval, timeout)

    def _ready(self, wanted: int) -> int:
        """What of that is so already; nothing, too, if the socket is broken: psycopg will say how."""
        poll = _poll()
        poll.register(self.pgconn.socket, _EVENTS[wanted])
        return sum(_READY[found & _BOTH] for _, found in poll.poll(0))


def kind() -> type[Connection]:
    """Which connections this process should have."""
    monkey = sys.modules.get("gevent.monkey")
    return Cooperating if monkey and monkey.is_module_patched("select") else Connection


def _poll() -> Any:
    """The system's own, which gevent has replaced."""
    from gevent.monkey import get_original

    return get_original("select", "poll")()


def _rest(gen: Steps[T], wanted: Wait) -> Steps[T]:
    """The steps that are left, after what was wanted last."""
    while True:
        ready = yield wanted
        try:
            wanted = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result
