"""What goes to Postgres in one round trip: statements queue on a transaction and leave together, in order.

A statement of its own costs a round trip and, through the ORM, many times what psycopg takes for it. So what the verbs write is
queued here, the transaction's BEGIN first of all, and leaves in one message: with what is read next, so that this reads what was
written, or before the commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import psycopg
import sqlalchemy as sa
from psycopg.pq import TransactionStatus
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from models.driver import Answer, Connection


class Stale(Exception):
    """A compare-and-swap found that somebody else had moved the row: do nothing more with it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, in psycopg's notation, with its values."""

    text: str
    values: dict[str, Any]
    stale: str | None = None
    """Said by Stale if the statement meets no row, where it must meet one."""


_Said = tuple[str, dict[str, Any]]

_BEGIN: _Said = ("BEGIN", {})
_COMMIT: _Said = ("COMMIT", {})
_ROLLBACK: _Said = ("ROLLBACK", {})
_WORKSPACE = "SELECT set_config('assent.workspace', %(workspace)s, true)"


class Pipeline:
    """A transaction on a pooled connection. It opens with the first statement, and not at all if there is none."""

    def __init__(self, engine: sa.Engine, workspace_id: str) -> None:
        """Errors: SQLAlchemy's, of no connection to be had. One that died in the pool is replaced."""
        self.engine = engine
        self.workspace_id = workspace_id
        self.queue: list[Statement] = []
        with _translated(engine.dialect):
            self.pooled = engine.raw_connection()
            while self.driver.hung_up():
                self.pooled.invalidate()
                self.pooled = engine.raw_connection()

    @property
    def driver(self) -> Connection:
        """psycopg's own connection."""
        return cast("Connection", self.pooled.driver_connection)

    @property
    def is_open(self) -> bool:
        """Whether the transaction was begun, by what Postgres said last."""
        return self.driver.pgconn.transaction_status != TransactionStatus.IDLE

    def send(self, *asked: Statement) -> list[list[tuple[Any, ...]]]:
        """Send what is queued, and behind it what is asked; the rows of each that is asked.

        Raises Stale, or SQLAlchemy's errors; the transaction is then good for nothing but a rollback.
        """
        statements = [*self.queue, *asked]
        opening = [] if self.is_open else [_BEGIN, (_WORKSPACE, {"workspace": self.workspace_id})]
        answers = self._exchange(opening + [(each.text, each.values) for each in statements])[len(opening) :]
        self.queue.clear()
        for each, answer in zip(statements, answers, strict=True):
            if each.stale and answer.met != 1:
                raise Stale(each.stale)
        return [answer.rows for answer in answers[len(answers) - len(asked) :]]

    def settle(self) -> None:
        """Open it and send what is queued, before somebody else speaks on the connection. Raises as `send`."""
        if self.queue or not self.is_open:
            self.send()

    def commit(self) -> None:
        """End it. An error may come from before the commit or from behind it; the connection is dropped."""
        if self.queue:
            self.send()
        if self.is_open:
            try:
                self._exchange([_COMMIT])
            except BaseException:
                self.pooled.invalidate()
                raise

    def roll_back(self) -> None:
        """End it; a connection that cannot even do that is dropped, and why it came to that is raised by who called."""
        if not self.pooled.is_valid:
            return
        try:
            if self.is_open:
                self._exchange([_ROLLBACK])
        except DBAPIError:
            self.pooled.invalidate()

    def give_back(self) -> None:
        """Return the connection to its pool."""
        self.pooled.close()

    def _exchange(self, statements: list[_Said]) -> list[Answer]:
        with _translated(self.engine.dialect, self.driver):
            return self.driver.exchange(statements)


class Db(Session):
    """A transaction: the ORM's session, above the pipeline that everything goes through."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(autoflush=False, expire_on_commit=False)
        self.pipeline = pipeline
        self._of_the_orm: sa.Connection | None = None

    def get_bind(self, *_: Any, **__: Any) -> sa.Connection:
        """The ORM's way to the same connection, made when it is first needed. What it says goes behind what is queued."""
        if self._of_the_orm is None:
            self._of_the_orm = sa.Connection(self.pipeline.engine, connection=self.pipeline.pooled)
            sa.event.listen(self._of_the_orm, "before_cursor_execute", lambda *_: self.pipeline.settle())
        return self._of_the_orm


def queue(db: Db, statement: Statement) -> None:
    """Have it sent with whatever is sent next."""
    db.pipeline.queue.append(statement)


def ask(db: Db, *statements: Statement) -> list[list[tuple[Any, ...]]]:
    """The rows of each of these, in one round trip. Raises Stale, or SQLAlchemy's errors."""
    return db.pipeline.send(*statements)


@contextmanager
def _translated(dialect: sa.Dialect, driver: Connection | None = None) -> Iterator[None]:
    """psycopg's errors are raised as SQLAlchemy raises them, so that there is one kind to catch."""
    try:
        yield
    except psycopg.Error as error:
        lost = driver is not None and driver.closed
        said = DBAPIError.instance(
            None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=lost, dialect=dialect
        )
        raise said from error
