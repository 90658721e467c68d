"""What goes to Postgres in one round trip: statements queue on a transaction and leave together, in order.

A statement of its own costs a round trip and, through the ORM, many times what psycopg takes for it. So what the verbs write is
queued here, the transaction's BEGIN first of all, and leaves in one message: with what is read next, so that this reads what was
written, or before the commit.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.orm import InstanceState, Session
from sqlalchemy.orm.attributes import instance_state

from models.driver import Connection, Rows

T = TypeVar("T")


class Stale(Exception):
    """A compare-and-swap found that somebody else had moved the row: do nothing more with it."""


class Statement(NamedTuple):
    """One statement, in psycopg's notation, with its values."""

    text: str
    values: dict[str, Any]

    @property
    def key(self) -> str:
        """The same of the same."""
        return f"{self.text} {self.values}"


_BEGIN, _COMMIT, _ROLLBACK = Statement("BEGIN", {}), Statement("COMMIT", {}), Statement("ROLLBACK", {})
_MOVED = "AS001"
"""The code of what the database's function `assent_still` raises."""
_WORKSPACE = "SELECT set_config('assent.workspace', %(workspace)s, true)"


class Pipeline:
    """A transaction on a pooled connection. It opens with the first statement, and not at all if there is none."""

    def __init__(self, engine: sa.Engine, workspace_id: str) -> None:
        """Errors: SQLAlchemy's, of no connection to be had. One that died in the pool is replaced."""
        self.engine = engine
        self.workspace_id = workspace_id
        self.queue: list[Statement] = []
        self.wanted: list[Statement] = []
        """To be read ahead."""
        self.ahead: dict[str, Rows] = {}
        """What was read ahead, and not yet asked."""
        try:
            self.pooled = engine.raw_connection()
            while self.driver.hung_up():
                self.pooled.invalidate()
                self.pooled = engine.raw_connection()
        except psycopg.Error as error:
            raise self._translated(error) from error

    @property
    def driver(self) -> Connection:
        """psycopg's own connection."""
        return cast("Connection", self.pooled.driver_connection)

    @property
    def is_open(self) -> bool:
        """Whether the transaction was begun, by what Postgres said last."""
        return not self.driver.is_idle

    def send(self, *asked: Statement, end: Statement | None = None) -> list[Rows]:
        """Send what is queued, what is asked, and what is read ahead or the transaction's end; the rows of each that is asked.

        Raises Stale, or SQLAlchemy's errors; the transaction is then good for nothing but a rollback.
        """
        before = [] if self.is_open else [_BEGIN, Statement(_WORKSPACE, {"workspace": self.workspace_id})]
        before += self.queue
        behind = [end] if end else self.wanted
        rows = self._exchange([*before, *asked, *behind])[len(before) :]
        if self.wanted and not end:
            self.ahead |= {each.key: found for each, found in zip(self.wanted, rows[len(asked) :], strict=True)}
        self.queue.clear()
        self.wanted.clear()
        return rows[: len(asked)]

    def settle(self) -> None:
        """Open it and send what is queued, before somebody else speaks on the connection. Raises as `send`."""
        if self.queue or not self.is_open:
            self.send()

    def commit(self) -> None:
        """End it, with what is queued, in one message. Raises as `send`; if the connection is lost, nobody knows if it did."""
        if self.is_open and self.driver.has_failed:
            raise PendingRollbackError("a statement failed, and what was done before it is undone")
        if self.queue or self.is_open:
            self.send(end=_COMMIT)

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

    def _exchange(self, statements: list[Statement]) -> list[Rows]:
        try:
            return self.driver.exchange(statements)
        except psycopg.Error as error:
            raise self._translated(error, lost=self.driver.closed) from error

    def _translated(self, error: psycopg.Error, *, lost: bool = False) -> Exception:
        """The error as SQLAlchemy says it, so that there is one kind to catch; or Stale."""
        if error.sqlstate == _MOVED:
            return Stale(error.diag.message_primary)
        more: dict[str, Any] = {"connection_invalidated": lost, "dialect": self.engine.dialect}
        said: Exception = DBAPIError.instance(None, None, error, psycopg.Error, **more)
        return said


class Db(Session):
    """A transaction, above the pipeline that everything goes through.

    It becomes the ORM's session when the ORM is first asked: that costs as much as a commit, and what the verbs do needs no ORM.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.rows: dict[Any, Any] = {}
        """What was read or made without the ORM, by its identity key."""
        self._of_the_orm: sa.Connection | None = None

    if not TYPE_CHECKING:  # where there is no such attribute, the type checker should say so

        def __getattr__(self, name: str) -> Any:
            """Become the ORM's session, since something of it is wanted that is not there yet."""
            if self.is_of_the_orm:
                raise AttributeError(name)
            super().__init__(autoflush=False, expire_on_commit=False)
            for row in self.rows.values():
                self.adopt(instance_state(row))
            return getattr(self, name)

    @property
    def is_of_the_orm(self) -> bool:
        """Whether the ORM was asked."""
        return "identity_map" in vars(self)

    def adopt(self, state: InstanceState[Any]) -> None:
        """Have the ORM know a row of `rows` too."""
        state.session_id = self.hash_key
        self.identity_map.add(state)

    def get(self, entity: type[T], ident: Any, **options: Any) -> T | None:  # type: ignore[override]  # classes only
        """The row with that primary key, or None. One that was read already is there, unless `options` ask for more."""
        mapper = cast(Any, entity).__mapper__
        key = mapper.identity_key_from_primary_key(ident if isinstance(ident, tuple) else (ident,))
        if not options and key in self.rows:
            return cast(T, self.rows[key])
        return super().get(entity, ident, **options)

    def close(self) -> None:
        """End what the ORM has begun."""
        if self.is_of_the_orm:
            super().close()

    def get_bind(self, *_: Any, **__: Any) -> sa.Connection:
        """The ORM's way to the same connection, made when it is first needed. What it says goes behind what is queued."""
        if self._of_the_orm is None:
            self._of_the_orm = sa.Connection(self.pipeline.engine, connection=self.pipeline.pooled)
            sa.event.listen(self._of_the_orm, "before_cursor_execute", lambda *_: self.pipeline.settle())
        return self._of_the_orm


def queue(db: Db, statement: Statement) -> None:
    """Have it sent with whatever is sent next."""
    db.pipeline.queue.append(statement)


def ask(db: Db, *statements: Statement) -> list[Rows]:
    """The rows of each of these, in one round trip, or as they were read ahead. Raises Stale, or SQLAlchemy's errors."""
    ahead = db.pipeline.ahead
    if ahead and all(each.key in ahead for each in statements):
        return [ahead.pop(each.key) for each in statements]
    return db.pipeline.send(*statements)


def read_ahead(db: Db, *statements: Statement) -> None:
    """Have these read right behind what is asked next, which takes the lock that they are to be read under. Whoever asks one of
    them later, in the same words, has that answer: so nothing that they read may be written in between."""
    db.pipeline.wanted += statements
