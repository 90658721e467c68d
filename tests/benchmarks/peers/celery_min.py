"""Celery and Postgres by hand: the least that makes the cycle durable, in four commits of psycopg, behind Flask.

Start: the call is stored. Decision: its status. Resume: a claim, and the end. A crash after the claim leaves the session as it is.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import cycle
import psycopg
from celery import Celery
from flask import abort

app = Celery("celery_min", broker=os.environ["PEER_REDIS"])
app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=8, worker_enable_remote_control=False)
_idle: list[psycopg.Connection] = []


@contextmanager
def connection() -> Iterator[psycopg.Connection]:
    """Borrow one of this process's connections."""
    db = _idle.pop() if _idle else psycopg.connect(os.environ["PEER_DATABASE"], autocommit=True)
    yield db
    _idle.append(db)


def prepare() -> None:
    """Create the table."""
    with connection() as db:
        db.execute("CREATE TABLE session (id text PRIMARY KEY, status text NOT NULL, messages jsonb NOT NULL)")


@app.task
def start(session_id: str) -> None:
    """Ask the model, and store what it proposes."""
    messages = [cycle.PROMPT, cycle.ask([cycle.PROMPT])]
    with connection() as db:
        db.execute("INSERT INTO session VALUES (%s, 'waiting', %s)", (session_id, json.dumps(messages)))
    cycle.ask_people(session_id)


def decide(session_id: str) -> None:
    """Allow the call once, and send the task."""
    sql = "UPDATE session SET status = 'allowed' WHERE id = %s AND status = 'waiting'"
    with connection() as db:
        if db.execute(sql, (session_id,)).rowcount == 0:
            abort(409)
    resume.delay(session_id)


@app.task
def resume(session_id: str) -> None:
    """Run the call that was allowed, and ask the model again."""
    sql = "UPDATE session SET status = 'running' WHERE id = %s AND status = 'allowed' RETURNING messages"
    with connection() as db:
        row = db.execute(sql, (session_id,)).fetchone()
    if row is None:
        return
    messages = [*row[0], cycle.run(session_id, row[0][-1])]
    cycle.tell(session_id, "result")
    messages.append(cycle.ask(messages))
    with connection() as db:
        db.execute("UPDATE session SET status = 'done', messages = %s WHERE id = %s", (json.dumps(messages), session_id))
    cycle.tell(session_id, "done")


web = cycle.front(start.delay, decide)
