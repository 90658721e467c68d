"""Toolsets for a worker: the listing, and the run of a call. No function of a toolset ever runs in the worker itself.

Each process of a worker keeps one process per toolset, and one more for each further thread that calls it at the same time. A
process starts with its first call. It ends after `child.IDLE_SECONDS` without a call, or with a call whose outcome is unknown.
"""

import logging
import os
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from assent import ToolError
from workers import leash
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.output import OutcomeUnknown
from workers.tools.python import checking, discovery
from workers.tools.python.child import NotBegun, ToolsetProcess, UnusableToolset
from workers.tools.python.discovery import ToolsetPlace

__all__ = ["describe", "end_idle", "toolset_tool"]

log = logging.getLogger(__name__)

ReceivesTraceback = Callable[[str], None]

_JUDGED_FIELDS = ("input_schema", "effect", "idempotent", "policy", "workdir")
"""Fields by which policies and people judge a tool. A call of a tool with another value is refused."""
_idle: defaultdict[str, deque[ToolsetProcess]] = defaultdict(deque)
"""By toolset, the processes that run no call. Threads take and return them without a lock, as both are atomic."""
_places: dict[str, ToolsetPlace] = {}
"""By toolset, its place at the last `describe`."""


def describe(*, keep: bool = False) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the entries of this worker's toolsets, by name (`Tool.as_entry`), and a sentence for each toolset that cannot be used.

    Each toolset is imported in a process of its own, all at the same time. `keep`: leave these processes to the next calls.
    """
    places, problems = discovery.places()
    by_name = _ready(places, problems)
    for name, same_name in by_name.items():
        if len(same_name) > 1:
            both = " and ".join(str(place) for place, _ in same_name)
            problems.append(f"{both}: both are called {name!r}, and neither is used; rename one")
    usable = {name: same_name[0] for name, same_name in by_name.items() if len(same_name) == 1}
    _places.clear()
    _places.update({name: place for name, (place, _) in usable.items()})
    for name, same_name in by_name.items():
        for _, child in same_name:
            if keep and name in usable:
                _idle[name].append(child)
            else:
                child.close()
    return {name: list(child.tools.values()) for name, (_, child) in usable.items()}, problems


def toolset_tool(toolset_name: str, entry: dict[str, Any], receive: ReceivesTraceback | None = None) -> Tool:
    """Return the tool of an entry from `describe`, here or in another worker. `receive` gets the traceback of a failure."""
    return Tool.of_entry(entry, partial(_run, toolset_name, entry, receive))


def end_idle() -> None:
    """End the processes that run no call."""
    for children in list(_idle.values()):
        while children:
            children.pop().close()


def _ready(places: list[ToolsetPlace], problems: list[str]) -> dict[str, list[tuple[ToolsetPlace, ToolsetProcess]]]:
    """Start a process for each toolset. Returns those that are usable, by the toolset's name. Adds a sentence for each other."""
    by_name: defaultdict[str, list[tuple[ToolsetPlace, ToolsetProcess]]] = defaultdict(list)
    children: list[tuple[ToolsetPlace, ToolsetProcess]] = []
    for place in places:
        try:
            children.append((place, ToolsetProcess(place)))
        except UnusableToolset as error:
            problems.append(f"{place}: {error}")
    for place, child in children:
        try:
            by_name[_name_of_usable(child)].append((place, child))
        except UnusableToolset as error:
            problems.append(f"{place}: {error}")
    return by_name


def _name_of_usable(child: ToolsetProcess) -> str:
    """Return the name of a toolset once its process is ready. Raises UnusableToolset, after which the process is ended."""
    ready = child.hello()
    for entry in ready["tools"]:
        if fault := checking.fault(entry):
            child.close()
            raise UnusableToolset(f"{entry['name']}: {fault}")
    return str(ready["name"])


def _run(
    toolset: str, entry: dict[str, Any], receive: ReceivesTraceback | None, context: ToolContext, fields: dict[str, Any]
) -> ToolResult:
    name = entry["name"]
    try:
        end = _call(toolset, entry, context, fields)
    except OutcomeUnknown as unknown:
        log.error("tool %s of toolset %s, call %s: %s", name, toolset, context.call_id, unknown)
        raise
    if "refused" in end:
        raise ToolError(end["refused"])
    if "lapsed" in end:
        raise ToolError(f"not begun: {leash.LAPSED}")
    if "failed" in end:
        # A traceback may hold the call's input, which no log may show.
        log.error("tool %s of toolset %s failed inside, call %s: %s", name, toolset, context.call_id, end["failed"])
        if receive:
            receive(end["traceback"])
        return text_result(f"{name}: failed inside ({end['failed']})", is_error=True)
    return ToolResult(**end["returned"])


def _call(toolset: str, entry: dict[str, Any], context: ToolContext, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the end of one call. A process that ended by itself between two calls is replaced, once."""
    for last in (False, True):
        try:
            child = _take(toolset, context)
            _refuse_changed(toolset, entry, child)
            end = child.call(entry["name"], fields, context)
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


def _take(toolset: str, context: ToolContext) -> ToolsetProcess:
    """Return a process that runs no other call. Raises ToolError, NotBegun."""
    if context.cancelled.is_set():
        raise NotBegun
    children = _idle[toolset]
    while children:
        try:
            child = children.pop()
        except IndexError:  # another thread was faster
            break
        if child.usable:
            return child
        child.close()
    if toolset not in _places:
        describe()
    if toolset not in _places:
        raise ToolError(f"this worker has no toolset {toolset!r}")
    try:
        child = ToolsetProcess(_places[toolset])
        child.hello(context)
    except UnusableToolset as unusable:
        log.error("toolset %s: %s", _places[toolset], unusable)
        raise ToolError("its process cannot be started; the worker's log says why") from None
    return child


def _refuse_changed(toolset: str, entry: dict[str, Any], child: ToolsetProcess) -> None:
    """Refuse a tool that changed after its listing: the policy and people judged the listed tool. Raises ToolError."""
    current = child.tools.get(entry["name"])
    if current is None or any(entry.get(key) != current[key] for key in _JUDGED_FIELDS):
        child.close()
        change = "has changed" if current else "is gone"
        raise ToolError(f"its code {change} since the worker listed it; whoever runs the worker of {toolset} must restart it")


os.register_at_fork(after_in_child=_idle.clear)  # the processes are the parent's
