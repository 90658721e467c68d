"""Toolsets for a worker: what there is, and how a call of one is run. No function of a toolset ever runs in the worker itself.

Each process of a worker keeps one runner per toolset (one more for each further thread that calls it at the same time), from its
first call until it was idle for `child.IDLE_SECONDS`. A runner that a call had to be torn out of is replaced.
"""

import logging
import os
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from workers.tools.errors import OutcomeUnknown, ToolError
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.python import discovery
from workers.tools.python.child import Child, NotBegun, Unusable
from workers.tools.python.discovery import Place

__all__ = ["describe", "end_idle", "toolset_tool"]

log = logging.getLogger(__name__)

Told = Callable[[str], None]

_SAME = ("input_schema", "effect", "idempotent", "policy", "workdir")
"""Of an entry, what must not have changed since somebody decided by it."""
_idle: defaultdict[str, deque[Child]] = defaultdict(deque)
"""By toolset, the runners that run nothing. Threads take and give back without a lock: one step each."""
_places: dict[str, Place] = {}
"""By toolset, where the last `describe` found it."""


def describe() -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """What this worker's toolsets have, by name (`Tool.described`), and a sentence for each that cannot be used.

    Each is imported in a runner of its own, all at the same time, which ends with this.
    """
    places, problems = discovery.places()
    started: list[tuple[Place, Child]] = []
    found: dict[str, tuple[Place, list[dict[str, Any]]]] = {}
    twice: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        try:
            started.append((place, Child(place)))
        except Unusable as error:
            problems.append(f"{place}: {error}")
    for place, child in started:
        try:
            ready = child.hello()
            child.close()
        except Unusable as error:
            problems.append(f"{place}: {error}")
            continue
        twice[ready["name"]].append(place)
        found[ready["name"]] = place, ready["tools"]
    for name, all_of_it in twice.items():
        if len(all_of_it) > 1:
            del found[name]
            problems.append(f"{' and '.join(map(str, all_of_it))}: both are called {name!r}, and neither is used; rename one")
    _places.update({name: place for name, (place, _) in found.items()})
    for gone in _places.keys() - found.keys():
        del _places[gone]
    return {name: entries for name, (_, entries) in found.items()}, problems


def toolset_tool(toolset_name: str, entry: dict[str, Any], told: Told | None = None) -> Tool:
    """The tool that `describe` (here or in another worker) gave this entry for. `told` gets the traceback of a failure."""
    return Tool.of_entry(entry, partial(_run, toolset_name, entry, told))


def end_idle() -> None:
    """End the runners that run nothing."""
    for kept in list(_idle.values()):
        while kept:
            kept.pop().close()


def _run(toolset: str, entry: dict[str, Any], told: Told | None, context: ToolContext, given: dict[str, Any]) -> ToolResult:
    name = entry["name"]
    try:
        end = _call(toolset, entry, context, given)
    except OutcomeUnknown as unknown:
        log.error("tool %s of toolset %s, call %s: %s", name, toolset, context.call_id, unknown)
        raise
    if "says" in end:
        raise ToolError(end["says"])
    if "failed" in end:
        # The traceback may hold the call's input, which is nobody's business in a log.
        log.error("tool %s of toolset %s failed inside, call %s: %s", name, toolset, context.call_id, end["failed"])
        if told:
            told(end["traceback"])
        return text_result(f"{name}: failed inside ({end['failed']})", is_error=True)
    return ToolResult(**end["returned"])


def _call(toolset: str, entry: dict[str, Any], context: ToolContext, given: dict[str, Any]) -> dict[str, Any]:
    """The end of one call. A runner that ended by itself between two calls is replaced, once."""
    for last in (False, True):
        try:
            child = _take(toolset, context)
            _refuse_changed(toolset, entry, child)
            end = child.call(entry["name"], given, context)
        except NotBegun:
            if context.cancelled.is_set():
                raise ToolError("cancelled before it began") from None
            context.require_lease()
            if last:
                raise ToolError("its process ended before the call began") from None
        else:
            _idle[toolset].append(child)
            return end
    raise AssertionError("unreachable")


def _take(toolset: str, context: ToolContext) -> Child:
    """A runner that nobody else uses. Errors: ToolError, NotBegun."""
    if context.cancelled.is_set():
        raise NotBegun
    kept = _idle[toolset]
    while kept:
        try:
            child = kept.pop()
        except IndexError:  # another thread was quicker
            break
        if child.usable:
            return child
        child.close()
    if toolset not in _places:
        describe()
    if toolset not in _places:
        raise ToolError(f"this worker has no toolset {toolset!r}")
    try:
        child = Child(_places[toolset])
        child.hello(context)
    except Unusable as unusable:
        log.error("toolset %s: %s", _places[toolset], unusable)
        raise ToolError("its process cannot be started; the worker's log says why") from None
    return child


def _refuse_changed(toolset: str, entry: dict[str, Any], child: Child) -> None:
    """What runs must be what was described, and so what was judged and shown."""
    now = child.tools.get(entry["name"])
    if now is None or any(entry.get(key) != now[key] for key in _SAME):
        child.close()
        what = "has changed" if now else "is gone"
        raise ToolError(f"its code {what} since the worker listed it; whoever runs the worker of {toolset} must start it again")


os.register_at_fork(after_in_child=_idle.clear)  # they are the other process's
