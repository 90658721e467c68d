"""Crash points: `celery -A workers worker --include crashes.points` dies at a boundary that a test has armed.

Nothing of this is in production code: the functions on both sides of each boundary are wrapped from here. A test arms a boundary
by writing its name as a line of the file that ASSENT_TEST_CRASHES names; the process that comes there takes the line off and is
gone by kill -9: no `finally`, no flush, no goodbye to Postgres or Redis.
"""

import fcntl
import gc
import os
import signal
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from crashes.boundaries import ARMED, UNLISTED
from flask import Flask

from api import create_app
from models import db, due, flow, lease
from models.attempt import Attempt
from models.pipeline import Pipeline, Statement
from models.principal import Principal
from models.tool_call import ToolCall
from models.work import Work
from workers import enqueue, providers, tool, turn
from workers.celery import app
from workers.tools import registry

_doing: ContextVar[str] = ContextVar("doing", default="")
"""The verb of the transaction that is open, or was just committed, in this task."""

_WROTE = Statement("SELECT pg_current_xact_id_if_assigned() IS NOT NULL", {})

READS = "a look"
"""Says of a transaction that it changes nothing but leases, which are renewed as if nothing had been."""


def here(boundary: str) -> None:
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


def _name(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have the transaction that a function works in known by this verb."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def named(*args: Any, **kwargs: Any) -> Any:
            _doing.set(verb)
            return function(*args, **kwargs)

        return named

    return wrap


def _watch(outside: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The two boundaries of a call to the outside world."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            here(f"{outside}.before")
            answer = function(*args, **kwargs)
            here(f"{outside}.after")
            return answer

        return watched

    return wrap


def _commit(self: Pipeline, commit: Callable[[Pipeline], None] = Pipeline.commit) -> None:
    verb = _doing.get()
    if self.queue:
        self.send()
    if not verb and self.is_open and self.send(_WROTE) == [[(True,)]]:
        with Path(os.environ[UNLISTED]).open("a") as file:
            file.write("".join(traceback.format_stack(limit=6)) + "\n")
    here(f"{verb}.before_commit")
    commit(self)
    here(f"{verb}.after_commit")


def _publish(*args: Any, publish: Callable[..., bool] = enqueue.publish) -> bool:
    done = publish(*args)
    here(f"{_doing.get()}.after_publish")
    _doing.set("")
    return done


def _hints(table: Any, *args: Any, hints: Callable[..., Any] = due.hints, **more: Any) -> Any:
    _doing.set("dispatch_calls" if table is ToolCall else "dispatch_turns")
    return hints(table, *args, **more)


def _loaded(name: str, provider_for: Callable[[str], Any] = providers.provider_for) -> Any:
    provider = provider_for(name)
    provider.ask = _watch("model")(provider.ask)
    return provider


for _verb in ("claim_turn", "checkpoint", "fail_turn", "claim_call", "finish_call", "lose_call", "expire_due", "receive"):
    setattr(flow, _verb, _name(_verb)(getattr(flow, _verb)))
for _verb in ("rescue_turn", "rescue_call", "expire_calls", "release_waiting", "swept", "remind_due", "offer_work", "stop_work"):
    setattr(flow, _verb, _name(_verb)(getattr(flow, _verb)))
for _verb in ("renew", "look"):
    setattr(lease, _verb, _name(READS)(getattr(lease, _verb)))
Work.acknowledge = _name("acknowledge_work")(Work.acknowledge)  # type: ignore[method-assign]
Work.beat = _name("renew_work")(Work.beat)  # type: ignore[method-assign]
Attempt.say = staticmethod(_name("tell")(Attempt.say))  # type: ignore[method-assign]
for _verb in ("queues", "lapsed", "overdue_approvals", "unanswered_calls", "approvals_to_remind", "new_grants", "waiting_for"):
    setattr(due, _verb, _name(READS)(getattr(due, _verb)))
due.hints = _hints
registry.execute = _watch("effect")(registry.execute)
turn.provider_for = _loaded
enqueue.publish = _publish
Pipeline.commit = _commit  # type: ignore[method-assign]
assert tool.registry is registry, "tool.run finds the wrapped one"


@app.task(name="door.receive")
def door(session_id: str, principal: dict[str, Any], events: list[dict[str, Any]]) -> None:
    """What a door does with a client's events, for a process that may die."""
    who = Principal(**principal)
    with db.transaction(who.workspace_id) as handle:
        flow.receive(handle, flow.lock(handle, session_id), who, events)


@cache
def api() -> Flask:
    """The doors themselves, in this process."""
    return create_app()


@app.task(name="door.ask")
def ask(request: dict[str, Any]) -> None:
    """What a door does with a request, for a process that may die."""
    api().test_client().open(**request)


# What a process would otherwise do for each of its first tasks is done once, before they are forked.
sa.orm.configure_mappers()
providers.provider_for("stand-in")
gc.collect()
gc.freeze()
