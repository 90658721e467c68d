"""Hints of queued turns and calls. In each queue, only the front of a workspace's rows has hints. A claim sends the next hint.

So the queue's messages alternate between workspaces, however many rows of one of them wait, and a backlog is worked off as fast as
workers take messages. The dispatch sweep starts again where messages were lost.

An index keeps the entry of each row that has left the queue until no snapshot may see the row. So each process remembers where a
line began at its last look, and the next look begins there. It misses only rows that a transaction queued more than MARGIN before
its commit. The dispatch sweep, which looks from the beginning, hints those.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from models.database.clock import STARTED
from models.database.exchange import Rows, Statement
from models.database.rows import Db
from models.database.transactions import Hint, outbox

AT_ONCE = 10
"""Size of the front: of a workspace's due rows in a queue, those that have been due longest."""
QUEUED = "status = 'queued'"
CLAIMABLE = f"{QUEUED} AND held_back IS NULL"
HELD_BACK = f"{QUEUED} AND held_back IS NOT NULL"
"""The calls that a worker held back are not at the front, so that the calls behind them go on. The dispatch sweep hints them."""
IN_QUEUE = {False: "queue IS NULL", True: "queue = %(queue)s"}
"""The condition for the tools' own queue, and for a named one. Each of the two can use the index."""
CALLS = {named: f"{CLAIMABLE} AND {in_queue}" for named, in_queue in IN_QUEUE.items()}

MARGIN = "interval '10 seconds'"
_MOST_LINES = 10_000
_begins: dict[tuple[str, ...], datetime] = {}
"""By line: no row of it that waits has been due for longer, as this process last saw it."""

_AGENT = "SELECT agent_id FROM thread WHERE thread.session_id = {0}.session_id AND thread.id = {0}.thread_id"
RETURNED = {
    "turn.run": f"id, session_id, workspace_id, ({_AGENT.format('turn')})",
    "tool.run": f"id, session_id, workspace_id, ({_AGENT.format('tool_call')}), name",
}
"""SQL of the columns for `hint_of`, by task."""


def hint_of(task: str, row: Sequence[str], queue: str | None = None) -> Hint:
    """Return the hint of a row of `RETURNED`."""
    row_id, session_id, workspace_id, agent_id, *tool = row
    about = {"tool": tool[0], "agent": agent_id} if tool else {"agent": agent_id}
    return Hint(task, (row_id, session_id, workspace_id), queue, str(about))


def hint_queued(db: Db, hint: Hint) -> None:
    """Send the hint of a row that was queued, and stamped as hinted, if the row is at the front. Else remove the stamp."""

    def send(behind: Rows) -> None:
        outbox(db).hints += [] if behind else [hint]

    _at_the_end(db, _TAKE_BACK, hint.task, hint.queue, send, id=hint.args[0])


def hint_next(db: Db, task: str, queue: str | None = None) -> None:
    """Send a hint for each row at the front that has none, because a row has left the queue."""

    def send(rows: Rows) -> None:
        outbox(db).hints += [hint_of(task, row, queue) for row in rows]

    _at_the_end(db, _NEXT, task, queue, send)


def _at_the_end(
    db: Db, updates: dict[tuple[str, bool], str], task: str, queue: str | None, then: Callable[[Rows], None], **values: str
) -> None:
    """Have the commit send an update, which then sees all rows that the transaction has queued or taken."""
    line, key = (db.workspace_id, task, queue or ""), ("hints", task, queue or "", *values.values())

    def remember(rows: Rows) -> None:
        if len(_begins) >= _MOST_LINES:
            _begins.clear()
        _begins[line] = rows[0][0]
        then([row[1:] for row in rows if row[1] is not None])

    values_of_look = {"queue": queue, "begins": _begins.get(line), **values}
    db.closing[key] = Statement(updates[task, queue is not None], values_of_look, remember)


def front(table: str, waiting: str, *, line: str, order: str = "due_at", most: str = str(AT_ONCE)) -> str:
    """Return SQL for the id, due_at and hinted_at of the first due rows of a line, such as the rows of a workspace in a queue.

    `waiting` is the condition of an index over all lines, `line` the condition of one of them, and `order` the index's order in it.
    `most` is SQL, and no value: Postgres would plan a statement anew each time if its LIMIT were a value.
    """
    return f"""
        SELECT id, due_at, hinted_at FROM {table} WHERE {waiting} AND {line} AND due_at <= {STARTED} ORDER BY {order} LIMIT {most}
    """  # noqa: S608 - names of our own


def stamp(table: str, waiting: str, ids: str, returning: str) -> str:
    """Return SQL that stamps the rows whose ids the query `ids` returns, if `waiting` still holds and nobody has locked them."""
    return f"""
        UPDATE {table} SET hinted_at = {STARTED} WHERE id = ANY (ARRAY(
            SELECT id FROM {table} WHERE id = ANY (ARRAY({ids})) AND {waiting} FOR NO KEY UPDATE SKIP LOCKED
        )) RETURNING {returning}
    """  # noqa: S608


_FRONTS = {
    ("turn.run", False): ("turn", QUEUED, "due_at"),
    ("tool.run", False): ("tool_call", CALLS[False], "queue, due_at"),
    ("tool.run", True): ("tool_call", CALLS[True], "queue, due_at"),
}
_OF_LINE = f"""
    workspace_id = current_setting('assent.workspace')
    AND due_at >= CASE WHEN %(begins)s::timestamptz <= {STARTED} THEN %(begins)s::timestamptz ELSE '-infinity' END
"""
"""A beginning in the future is from before a database that was restored."""
_TAKE_BACK, _NEXT = {}, {}
for _key, (_table, _waiting, _order) in _FRONTS.items():
    _look = f"""
        WITH front AS MATERIALIZED ({front(_table, _waiting, line=_OF_LINE, order=_order)}), changed AS ({{update}})
        SELECT begins, changed.* FROM (SELECT least(min(due_at), {STARTED} - {MARGIN}) AS begins FROM front) AS line
        LEFT JOIN changed ON true
    """  # noqa: S608
    _TAKE_BACK[_key] = _look.format(
        update=f"""
            UPDATE {_table} SET hinted_at = NULL
            WHERE id = %(id)s AND {_waiting} AND {_OF_LINE} AND id <> ALL (ARRAY(SELECT id FROM front)) RETURNING id
        """  # noqa: S608
    )
    _unhinted = "SELECT id FROM front WHERE hinted_at IS NULL"
    _NEXT[_key] = _look.format(
        update=stamp(_table, f"{_waiting} AND hinted_at IS NULL AND {_OF_LINE}", _unhinted, RETURNED[_key[0]])
    )
