"""Crash points: `celery -A workers worker --include crashes.points` dies at a boundary that a test has armed (see `dying`)."""

import gc
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import httpx2
import warm
from crashes.dying import doing, name, watch
from flask import Flask

from api import create_app
from api.v1.events.requests import EventsSend, plain
from models.audit import sealing
from models.audit.cutting import sweep as cutting
from models.audit.principal import Principal
from models.database import metric, renewals, transactions
from models.flow.begin import messages
from models.flow.carry_on import halts, hosted_work
from models.flow.decide import deadlines
from models.flow.judge import grants
from models.flow.lock import lock
from models.flow.run import claims, folds, results, turns
from models.flow.run.claims import QueuedCall
from models.flow.run.rejudging import Unresolved
from models.flow.spend import limits
from models.operate import archive_retention, archiving, due, floods, queued, removals, retention
from models.operate.metrics import adding_up
from models.session.approval.evidence import Evidence
from models.session.archive import contents
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.session.work import Work
from models.settings.providers import registry as providers_registry
from models.workspace import key_lookup, toolset
from models.workspace.idempotency import Slip
from workers import announcing, providers, tool
from workers.celery import app
from workers.providers import choosing
from workers.tools import execution

READS = "a look"
"""The name of a transaction that changes at most leases and metrics. A crash there has no effect of its own."""


def _hints(table: Any, *args: Any, hints: Callable[..., Any] = queued.hints, **more: Any) -> Any:
    if table in {ToolCall, Turn}:
        doing.set("dispatch_calls" if table is ToolCall else "dispatch_turns")
    return hints(table, *args, **more)


def _claimed(*args: Any, claim: Callable[..., Any] = QueuedCall.claim) -> Any:
    claimed = claim(*args)
    if isinstance(claimed, Unresolved):
        doing.set(READS)  # the worker looks where the paths lead, and then claims the call
    return claimed


def _loaded(*entry: Any, provider_for: Callable[..., Any] = providers.provider_for) -> Any:
    provider = provider_for(*entry)
    provider.ask = watch("model")(provider.ask)
    return provider


def _replace(module: ModuleType, verb: str, replacement: Callable[..., Any]) -> None:
    """Replace a verb in the workers and the API, which import it by its name, with its module, or into a table."""
    original = getattr(module, verb)
    callers = [each for each_name, each in sys.modules.items() if each_name.startswith(("api.", "workers."))]
    for caller in callers if verb in _CALLED_BY_THEIR_OWN_MODULE else [*callers, module]:
        for attribute in [attribute for attribute, value in vars(caller).items() if value is original]:
            setattr(caller, attribute, replacement)
        for table in [value for value in vars(caller).values() if isinstance(value, dict)]:
            table |= {key: replacement for key, value in table.items() if value is original}


_CALLED_BY_THEIR_OWN_MODULE = frozenset({"expire_due", "lose_call"})
"""Their callers there have names of their own."""
for _module, _verbs in {
    turns: ("checkpoint", "correct_usage", "fail_turn", "rescue_turn"),
    folds: ("fold",),
    results: ("finish_call", "lose_call", "rescue_call", "expire_calls"),
    deadlines: ("expire_due", "remind_due"),
    messages: ("receive",),
    grants: ("release_waiting", "swept"),
    removals: ("remove_batch",),
    archiving: ("begin_part", "take_place", "remove_part"),
    contents: ("store_content",),
    halts: ("resume", "settled"),
    hosted_work: ("offer_work",),
}.items():
    for _verb in _verbs:
        _replace(_module, _verb, name(_verb)(getattr(_module, _verb)))
_replace(turns, "queued_turn", name("claim_turn")(turns.queued_turn))
_replace(claims, "queued_call", name("claim_call")(claims.queued_call))
QueuedCall.claim = _claimed  # type: ignore[method-assign]
for _verb in ("renew", "look"):
    setattr(renewals, _verb, name(READS)(getattr(renewals, _verb)))
# Each writing request stores its response last. Verbs before that have names of their own, which end here.
Slip.store = name("respond")(Slip.store)  # type: ignore[method-assign]
for _verb in ("acknowledge", "beat"):
    setattr(Work, _verb, name("renew_work")(getattr(Work, _verb)))
Evidence.keep = name("look")(Evidence.keep)  # type: ignore[method-assign]
Attempt.say = staticmethod(name("tell")(Attempt.say))  # type: ignore[method-assign]
for _verb in (
    "lapsed",
    "removals",
    "overdue_approvals",
    "unanswered_calls",
    "approvals_to_remind",
    "new_grants",
    "waiting_for",
    "held_calls",
    "ended_halts",
    "stopped_by",
    "workspaces_at_limits",
):
    setattr(due, _verb, name(READS)(getattr(due, _verb)))
limits.sessions_to_resume = name(READS)(limits.sessions_to_resume)
limits.resume_at_limit = name("resume_at_limit")(limits.resume_at_limit)
queued.queues = name(READS)(queued.queues)
queued.hints = _hints
metric.sweep_succeeded = name(READS)(metric.sweep_succeeded)
for _verb in ("_add_window", "reach_seal"):
    setattr(adding_up, _verb, name(READS)(getattr(adding_up, _verb)))
for _verb in ("to_watch", "watch", "publish"):
    setattr(floods, _verb, name(READS)(getattr(floods, _verb)))
cutting.due = name(READS)(cutting.due)
cutting._is_sealed = name(READS)(cutting._is_sealed)
cutting._delete = name("cut")(cutting._delete)
archive_retention.due = name(READS)(archive_retention.due)
archive_retention.delete = name("delete_archived")(archive_retention.delete)
retention.delete_old = name("delete_old")(retention.delete_old)
sealing.grown = name(READS)(sealing.grown)
key_lookup._note_use = name(READS)(key_lookup._note_use)
sealing._seal = name("seal")(sealing._seal)
toolset.time_before_listing = name(READS)(toolset.time_before_listing)
toolset.keep_listing = name("keep_listing")(toolset.keep_listing)
toolset.mark_stale = name("mark_stale")(toolset.mark_stale)
announcing.PROGRAM = warm.standing("-m", "crashes.announcing")
announcing.AGAIN_SECONDS = 0.1
execution.execute = watch("effect")(execution.execute)
choosing.provider_for = _loaded
assert tool.execution is execution, "tool.run calls the wrapped execution.execute"


@app.task(name="door.receive")
def door(session_id: str, principal: dict[str, Any], events: list[dict[str, Any]]) -> None:
    """Store a client's events as the route does, in a process that may die."""
    who = Principal(**principal)
    with transactions.transaction(who.workspace_id) as db:
        body = EventsSend.model_validate({"events": events})
        messages.receive(lock(db, session_id, who), [plain(event) for event in body.events])


@cache
def api() -> Flask:
    """The API in this process."""
    return create_app()


@app.task(name="door.ask")
def ask(request: dict[str, Any]) -> None:
    """Answer a request in a process that may die."""
    api().test_client().open(**request)


# Done once before the fork, or each process would do all this for its first tasks.
providers.provider_for(providers_registry()[0], None)
httpx2.Client().close()  # loads its transport
api()
transactions.dispose()
gc.collect()
gc.freeze()
