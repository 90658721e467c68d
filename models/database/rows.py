"""Rows: how verbs read and write the tables.

    [call] = db.find(ToolCall, "WHERE id = %(id)s FOR NO KEY UPDATE", id=call_id)     rows of a table
    turn = db.get(Turn, turn_id)                                                      one row by its primary key
    titles = db.rows("SELECT title FROM session WHERE archived_at IS NULL")           tuples
    turns, calls = db.read(select(Turn, ...), select(ToolCall, ...))                  several reads, one round trip
    db.insert(turn)                                                                   a new row
    call.held_back = "no worker has the toolset"                                      written before the next read or the commit
    db.move(call, "running", fence=call.fence + 1)                                    a status, by compare-and-swap
    db.write("DELETE FROM work WHERE session_id = %(session)s", session=session_id)   any other statement

Writes are queued, and sent in order with the next read or the commit, in one message. So a read sees every earlier write. Changed
rows are saved at that moment, after all other writes: call `save` first if a statement must come after them. A new row is inserted
as it is at that moment. A row that is read again in the same transaction is the same object, with the database's present values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

import psycopg

from models.database.exchange import Connection, Rows, Statement
from models.database.query import Query, select, select_one
from models.database.tables import table_of
from models.pure import states

T = TypeVar("T")

STALE = "AS001"
"""SQLSTATE of the database's function `assent_still`."""


class Stale(Exception):
    """A compare-and-swap failed, because another transaction has moved the row. Leave the row alone."""


class RowGone(LookupError):
    """A row that must exist is missing."""


class Appends(Protocol):
    """An object that collects rows for the transaction, such as a locked session with its events."""

    def write(self) -> None:
        """Write the rows collected since the last call."""
        ...


@dataclass
class _RowState:
    """A row of this transaction, and its values in the database."""

    row: Any
    database_values: dict[str, Any]
    insert: Statement | None = None
    """The row's INSERT, while it is queued: a change of the row then changes the values that it inserts."""


@dataclass
class Db:
    """One open transaction. `models.database.transactions.transaction` opens it."""

    connection: Connection
    workspace_id: str
    only_reads: bool = False
    """True if each message is a transaction of its own, which nothing has to end: nothing is written, and no lock is kept."""
    info: dict[str, Any] = field(default_factory=dict)
    """Values that callers attach to the transaction."""
    appends: list[Appends] = field(default_factory=list)
    closing: dict[tuple[str, ...], Statement] = field(default_factory=dict)
    """The last statements before COMMIT, sent in the order of their keys. They change rows that many transactions share: so their
    locks are short, and every transaction takes them in the same order. A key names a row, or a set of rows locked in order."""
    _waiting: list[Statement] = field(default_factory=list)
    _states: dict[tuple[type, tuple[Any, ...]], _RowState] = field(default_factory=dict)

    def read(self, *queries: "Query[Any] | Statement") -> list[list[Any]]:
        """Return the rows of each query, in one round trip: objects for a Query, tuples for a Statement.

        Raises psycopg's errors, or Stale for an earlier move.
        """
        statements = [query.statement if isinstance(query, Query) else query for query in queries]
        self.save()
        before = [*self._opening(whole=self.only_reads), *self._waiting]
        results = self._exchange([*before, *statements])[len(before) :]
        return [
            [self._load(query.table, record) for record in records] if isinstance(query, Query) else list(records)
            for query, records in zip(queries, results, strict=True)
        ]

    def find(self, table: type[T], clauses: str = "", **values: Any) -> list[T]:
        """Return the rows of a table that `clauses` select."""
        return cast("list[T]", self.read(select(table, clauses, **values))[0])

    def first(self, table: type[T], clauses: str = "", **values: Any) -> T | None:
        """Return the first row that `clauses` select, or None."""
        return next(iter(self.find(table, clauses, **values)), None)

    def get(self, table: type[T], *key: Any, lock: bool = False) -> T | None:
        """Return the row with this primary key, or None. A row that this transaction has already is read only to `lock` it."""
        state = self._states.get((table, key))
        if state is not None and not lock:
            return cast("T", state.row)
        [rows] = self.read(select_one(table, *key, clauses="FOR NO KEY UPDATE" if lock else ""))
        return next(iter(rows), None)

    def get_one(self, table: type[T], *key: Any, lock: bool = False) -> T:
        """Return the row with this primary key. Raises RowGone if there is none."""
        row = self.get(table, *key, lock=lock)
        if row is None:
            raise RowGone(f"no {table_of(table).name} with key {key}")
        return row

    def rows(self, sql: str, **values: Any) -> Rows:
        """Return the rows of a statement, as tuples."""
        return self.read(Statement(sql, values))[0]

    def value(self, sql: str, **values: Any) -> Any:
        """Return the first column of the first row; None if there is no row."""
        return next((row[0] for row in self.rows(sql, **values)), None)

    def insert(self, row: Any) -> None:
        """Insert a new row. A column without a value takes its default."""
        table, fields = table_of(type(row)), vars(row)
        values = {name: default if fields.get(name) is None else fields[name] for name, default in table.defaults.items()}
        fields.update(values)
        insert = Statement(table.insert, table.adapted(values))
        self.queue(insert)
        self._states[type(row), table.key_of(values)] = _RowState(row, values, insert)

    def insert_many(self, table: type[Any], rows: Sequence[dict[str, Any]]) -> None:
        """Insert new rows, as dictionaries by column name, in one statement. They do not become objects."""
        if rows:
            sql = table_of(table)
            self.write(sql.insert_many, rows=sql.encoded(rows))

    def delete(self, row: Any) -> None:
        """Delete a row."""
        table = table_of(type(row))
        key = table.key_of(vars(row))
        self.write(table.delete, **dict(zip(table.primary_key, key, strict=True)))
        self._states.pop((type(row), key), None)

    def move(self, row: Any, status: str, **changes: Any) -> None:
        """Change a status by compare-and-swap, the only way to do so. The stored status and fence must still be those of `row`.

        Raises ValueError if `models.pure.states` lists no such transition. The statement raises Stale, once sent, if another
        transaction moved the row.
        """
        name = table_of(type(row)).name
        states.check(name, row.status, status)
        guards = ("status", "fence") if hasattr(row, "fence") else ("status",)
        changes = {**_changes(self._state_of(row)), "status": status, **changes}
        self._update(row, changes, guards, f"{name} {row.id} is no longer {row.status}")

    def write(self, sql: str, **values: Any) -> None:
        """Queue a statement that returns no rows. Changes of rows are sent after it, unless `save` is called before."""
        self.queue(Statement(sql, values))

    def queue(self, statement: Statement) -> None:
        """Queue a statement, whose rows its `then` gets when it has been sent."""
        assert not self.only_reads, "the transaction only reads"
        self._waiting.append(statement)

    def save(self) -> None:
        """Queue the appended rows, and the changes of this transaction's rows. Reads and the commit do this themselves."""
        for collector in self.appends:
            collector.write()
        for state in list(self._states.values()):
            if changes := _changes(state):
                self._update(state.row, changes, (), f"a row of {table_of(type(state.row)).name} is gone")

    def commit(self) -> None:
        """Save, then commit, in one message.

        Raises psycopg's errors or Stale. If the connection is lost, the transaction may have been committed: read again by fence.
        """
        self.save()
        if self.connection.has_failed:
            raise psycopg.errors.InFailedSqlTransaction("a statement failed, so this transaction can only be rolled back")
        end = [Statement("COMMIT", {})] if self.connection.in_transaction else []
        if self._waiting or self.closing or end:
            closing = [self.closing[key] for key in sorted(self.closing)]
            self._exchange([*self._opening(whole=True), *self._waiting, *closing, *end])

    def roll_back(self) -> None:
        """Roll back. Closes a connection on which that fails."""
        if self.connection.closed or not self.connection.in_transaction:
            return
        try:
            self.connection.exchange([Statement("ROLLBACK", {})])
        except psycopg.Error:
            self.connection.close()

    def _opening(self, *, whole: bool) -> list[Statement]:
        """Return the statements that open the transaction, unless it is open. `whole`: the message has all of its statements.

        Postgres takes the statements of one message for a transaction, which ends with the message.
        """
        if self.connection.in_transaction:
            return []
        setting = Statement("SELECT set_config('assent.workspace', %(workspace)s, true)", {"workspace": self.workspace_id})
        return [setting] if whole else [Statement("BEGIN", {}), setting]

    def _exchange(self, statements: Sequence[Statement]) -> list[Rows]:
        try:
            results = self.connection.exchange(statements)
        except psycopg.Error as error:
            if error.sqlstate == STALE:
                raise Stale(error.diag.message_primary) from error
            raise
        self._waiting.clear()
        for state in self._states.values():
            state.insert = None
        for statement, rows in zip(statements, results, strict=True):
            if statement.then:
                statement.then(rows)
        return results

    def _load(self, declared: type[T], record: Sequence[Any]) -> T:
        table = table_of(declared)
        row, values = table.new(record)
        state = self._states.get((declared, table.key_of(values)))
        if state is None:
            self._states[declared, table.key_of(values)] = _RowState(row, values)
            return cast("T", row)
        state.database_values = values
        vars(state.row).update(values)
        return cast("T", state.row)

    def _state_of(self, row: Any) -> _RowState:
        """Return the transaction's record of a row. A row from another transaction counts as unchanged."""
        table = table_of(type(row))
        key = (type(row), table.key_of(vars(row)))
        state = self._states.get(key)
        if state is None or state.row is not row:
            state = self._states[key] = _RowState(row, {name: vars(row)[name] for name in table.columns})
        return state

    def _update(self, row: Any, changes: dict[str, Any], guards: Iterable[str], otherwise: str) -> None:
        table, state = table_of(type(row)), self._state_of(row)
        if state.insert is not None:
            state.insert.values.update(table.adapted(changes))
        else:
            guarded = (*table.primary_key, *guards)
            before = {f"was_{name}": state.database_values[name] for name in guarded}
            self.write(table.update(tuple(changes), guarded), **table.adapted(changes), **before, otherwise=otherwise)
        vars(row).update(changes)
        state.database_values |= changes


def _changes(state: _RowState) -> dict[str, Any]:
    """Return the columns of a row that differ from the database."""
    now = vars(state.row)
    return {name: now[name] for name, was in state.database_values.items() if now[name] is not was and not _equal(now[name], was)}


def _equal(value: Any, database_value: Any) -> bool:
    """True if nothing has to be written. Another JSON object always counts as changed, since 1 and True are equal in Python."""
    return isinstance(value, str | int | float | datetime) and type(value) is type(database_value) and value == database_value
