"""Judges a call again when a worker claims it: by its input, and by where the paths in the input lead.

Only tools workers have the files. So a claim first returns the paths that it must resolve (`Unresolved`). The worker resolves them
with no transaction open, and claims again.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from jsonpointer import set_pointer

from models.flow.judge.grants import counting, verdict_on
from models.policy.session_policies import SessionPolicies
from models.pure.policy import Granted, Verdict
from models.pure.policy.conditions import look_up, pointer
from models.session.approval.grant import Grant
from models.session.locked import Locked
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall

_STRICT = {"allow": 0, "ask": 1, "deny": 2}

Places = Mapping[str, str | Exception]
"""Where paths lead, by their text: relative to the workdir and without links. An error: outside the workdir, or nowhere."""


@dataclass(frozen=True)
class Files:
    """What a worker saw of a session's files, for one call."""

    places: Places = field(default_factory=dict)
    """Where the paths lead that an earlier claim returned as Unresolved."""
    git_may_run: bool | None = None
    """True if git could run a program that a repository in the files names. None: the worker has not looked."""


UNSEEN = Files()
"""The worker has not looked."""


@dataclass(frozen=True)
class Unresolved:
    """A claim that cannot be judged before the worker has looked at the session's files."""

    paths: frozenset[str] = frozenset()
    """Paths in the input. The claim needs to know where they lead."""
    git_line: str | None = None
    """A command line that runs git. The claim needs to know whether git could run a program named by a repository in the files."""


@dataclass(frozen=True)
class Rejudged:
    """The present verdict on a call."""

    verdict: Verdict
    """The stricter of two verdicts: on the input as it is written, and on the input as its paths lead."""
    leads_to: dict[str, str] = field(default_factory=dict)
    """Where paths lead, by JSON Pointer, if they lead elsewhere than they say and only this made the verdict stricter."""


def judge_again(locked: Locked, rules: SessionPolicies, call: ToolCall, places: Places) -> Rejudged | Unresolved:
    """Return the present verdict on a call that was allowed. A new rule, a revoked grant or a changed link may deny or ask now."""
    call_input = CallInput.of(locked.db, call)
    standing = Grant.standing(locked, call.grants or ())
    grants = tuple(grant.rule for grant in counting(locked, rules, standing, call_input.askers(locked)))
    verdict_as_written = verdict_on(rules, call, call_input, Granted(grants, call_input.shown))
    paths = _paths(call_input.input, rules.path_arguments(call.name, grants)) if call.workdir else {}
    if unknown := paths.values() - places.keys():
        return Unresolved(frozenset(unknown))
    leads_to = {at: place for at, path in paths.items() if isinstance(place := places[path], str) and _elsewhere(path, place)}
    if not leads_to:
        return Rejudged(verdict_as_written)
    resolved_input, masked_input = deepcopy(call_input.input), deepcopy(call_input.shown)
    for at, place in leads_to.items():
        if masked_input is not None and look_up(masked_input, pointer(at)) == paths[at]:  # else the path is masked, and stays so
            set_pointer(masked_input, at, place)
        set_pointer(resolved_input, at, place)
    actual = verdict_on(rules, call, call_input, Granted(grants, masked_input), instead=resolved_input)
    if _STRICT[actual.effect] < _STRICT[verdict_as_written.effect] or (actual.effect, actual.rule) == (
        verdict_as_written.effect,
        verdict_as_written.rule,
    ):
        return Rejudged(verdict_as_written)
    return Rejudged(verdict_as_written) if actual.effect == "allow" else Rejudged(actual, leads_to)


def _paths(call_input: dict[str, Any], arguments: set[str]) -> dict[str, str]:
    """Return the paths in a call's input, by JSON Pointer."""
    values = {at: look_up(call_input, pointer(at)) for at in sorted(arguments)}
    return {at: path for at, path in values.items() if isinstance(path, str) and path}


def _elsewhere(path: str, place: str) -> bool:
    return ("/".join(name for name in path.split("/") if name not in {"", "."}) or ".") != place
