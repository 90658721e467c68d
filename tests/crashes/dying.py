"""Kills a process at a boundary that a test has armed, and names transactions by their verbs.

Production code has nothing of this: the functions on both sides of each boundary are wrapped from here. A test arms a boundary
by writing its name as a line into the file that ASSENT_TEST_CRASHES names. The process that comes there deletes the line and ends
by kill -9: no `finally`, no flush, no goodbye to Postgres or Redis.
"""

import fcntl
import os
import signal
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from crashes.boundaries import ARMED, UNLISTED

from models.database.rows import Db
from models.workspace import toolset
from workers import enqueue

doing: ContextVar[str] = ContextVar("doing", default="")
"""The verb of the transaction that is open, or was just committed, in this task."""

_WROTE = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"


def die_if_armed(boundary: str) -> None:
    """Die if this boundary is the next one that is armed."""
    try:
        with Path(os.environ[ARMED]).open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            first, _, rest = file.read().partition("\n")
            if first != boundary:
                return
            file.seek(0)
            file.truncate()
            file.write(rest)
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    except FileNotFoundError:
        return


def name(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that names the transaction of a function by this verb."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def named(*args: Any, **kwargs: Any) -> Any:
            doing.set(verb)
            return function(*args, **kwargs)

        return named

    return wrap


def watch(outside: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that puts a boundary before and after a call to the outside world."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            die_if_armed(f"{outside}.before")
            value = function(*args, **kwargs)
            die_if_armed(f"{outside}.after")
            return value

        return watched

    return wrap


def _commit(self: Db, commit: Callable[[Db], None] = Db.commit) -> None:
    verb = doing.get()
    self.save()
    if not verb and self.value(_WROTE):
        with Path(os.environ[UNLISTED]).open("a") as file:
            file.write("".join(traceback.format_stack(limit=6)) + "\n")
    die_if_armed(f"{verb}.before_commit")
    commit(self)
    die_if_armed(f"{verb}.after_commit")


def _publish(*args: Any, publish: Callable[..., bool] = enqueue.publish) -> bool:
    done = publish(*args)
    die_if_armed(f"{doing.get()}.after_publish")
    doing.set("")
    return done


enqueue.publish = _publish
Db.commit = _commit  # type: ignore[method-assign]
toolset.announce = name("announce")(toolset.announce)
