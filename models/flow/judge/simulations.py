"""Simulates a proposed rule or policy on past calls, and compares its verdicts with the past ones.

All other rules of the sessions and the workspace apply as they do today. A grant that allowed a call then allows it again, if the
tool still offers such a grant. Nothing is written. Inputs are judged with their secrets masked: otherwise callers could find out a
secret, character by character, with rules of their own. `Trial.reveal` judges the real inputs. Calls are read in pages, for a
bounded time.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from models.database.rows import Db
from models.errors import Busy, Invalid
from models.flow.judge.explanations import with_tool
from models.flow.judge.past_calls import Then, decided_how, grants_of, pages
from models.policy.session_policies import SessionPolicies
from models.pure.ahead import Pauses
from models.pure.json.canonical import canonical
from models.pure.policy import Effect, Granted, Match, Verdict
from models.pure.policy.rules import MAX_RULES
from models.session.row import Session
from models.session.thread.row import Thread
from models.settings import settings
from models.workspace.row import Workspace
from models.workspace.toolset import listings_of

EXAMPLES = 10
SHOWN_BYTES = 10_000
"""Largest input of an example."""
_KEPT = 500
"""Most compiled policies that are kept."""


@dataclass(frozen=True)
class Trial:
    """A proposal, and the calls to try it on."""

    since: datetime
    rule: dict[str, Any] | None = None
    """Added to the agent's policy; without `agent_id`, to the workspace's."""
    policy: dict[str, Any] | None = None
    """Replaces the tool's policy; without `tool`, the agent's; without `agent_id`, the workspace's."""
    agent_id: str | None = None
    tool: str | None = None
    reveal: bool = False
    """Judge the inputs with their secrets."""
    most: int = 10_000
    seconds: float = 5


@dataclass(frozen=True)
class SimulatedExample:
    """One call, for people to see."""

    call: Any
    masked_input: dict[str, Any] | None
    rule: str
    then: Then


@dataclass
class Side:
    """The calls that would have had one effect."""

    calls: int = 0
    then: Counter[Then] = field(default_factory=Counter)
    with_another_effect: list[SimulatedExample] = field(default_factory=list)
    """Some calls that had another effect at the time."""
    same: list[SimulatedExample] = field(default_factory=list)

    @property
    def examples(self) -> list[SimulatedExample]:
        """At most EXAMPLES calls; those with another verdict come first."""
        return (self.with_another_effect + self.same)[:EXAMPLES]


@dataclass
class SimulatedOutcome:
    """The result of a simulation."""

    sides: dict[Effect, Side] = field(default_factory=lambda: {"allow": Side(), "ask": Side(), "deny": Side()})
    looked_at: int = 0
    changed: int = 0
    """Calls that had another effect at the time."""
    masked: int = 0
    """Calls whose inputs were judged with secrets masked."""
    complete: bool = False

    def add(self, call: Any, verdict: Verdict, then: Then) -> None:
        """Count a call, and keep it as an example while there are few."""
        side = self.sides[verdict.effect]
        has_another_effect = verdict.effect != call.permission
        self.looked_at += 1
        self.changed += has_another_effect
        side.calls += 1
        side.then[then] += 1
        examples = side.with_another_effect if has_another_effect else side.same
        if len(examples) < EXAMPLES:
            examples.append(SimulatedExample(call, _short_input(call), verdict.rule, then))


def simulate(db: Db, workspace_id: str, trial: Trial) -> SimulatedOutcome:
    """Try the proposal on the workspace's calls, those of the newest sessions first."""
    outcome = SimulatedOutcome()
    trials = _TrialPolicies(db, trial, Workspace.policies(db))
    until = time.monotonic() + trial.seconds
    pauses = Pauses()
    for looks, calls in pages(db, workspace_id, trial.since, agent_id=trial.agent_id, tool=trial.tool):
        grants, then = grants_of(db, calls), decided_how(db, calls)
        for call in calls:
            if outcome.looked_at == trial.most or time.monotonic() > until:
                return outcome
            pauses.pause_if_due()
            look = looks[call.thread_id]
            policies = trials.of(look, call)
            offer = policies.quorum(call.name).offer
            call_grants = [grants[grant_id] for grant_id in call.grants or () if grant_id in grants]
            rules = [grant.rule for grant in call_grants if grant.is_offered(offer)]
            call_input, masked_input = call.input, call.shown_input
            if call.shown_input is not None and not trial.reveal:
                call_input, masked_input, outcome.masked = call.shown_input, None, outcome.masked + 1
                # The grants covered the real input, so the masked input need not match their hash or pattern.
                rules = [replace(grant, match=Match(call.name)) for grant in rules]
            outcome.add(call, policies.judge(call.name, call_input, Granted(tuple(rules), masked_input)), then[call.id])
        if time.monotonic() > until:
            return outcome
    outcome.complete = True
    return outcome


def _short_input(call: Any) -> dict[str, Any] | None:
    """Return the call's input with its secrets masked; None if it is long."""
    masked_input: dict[str, Any] = call.input if call.shown_input is None else call.shown_input
    return masked_input if len(canonical(masked_input)) <= SHOWN_BYTES else None


class _TrialPolicies:
    """The threads' policies with the proposal. Threads with the same `look` share what is compiled for a tool."""

    def __init__(self, db: Db, trial: Trial, policies: Mapping[str, Any]) -> None:
        self._db, self._trial, self._policies = db, trial, policies
        self._paths: dict[str, list[_Agent]] = {}
        self._by_look: dict[tuple[str, str], SessionPolicies] = {}

    def of(self, look: str, call: Any) -> SessionPolicies:
        """Return the policies for the call."""
        policies = self._by_look.get((look, call.name))
        if policies is None:
            if len(self._by_look) >= _KEPT:
                self._by_look.clear()
                self._paths.clear()
            policies = self._by_look[look, call.name] = self._compile(self._path(look, call), call.name)
        return policies

    def _path(self, look: str, call: Any) -> "list[_Agent]":
        if look not in self._paths:
            session = self._db.get(Session, call.session_id)
            if session is None:
                raise Busy(f"Session {call.session_id} was deleted meanwhile; try again.")
            threads = Thread.path_of(self._db, session.id, call.thread_id)
            bodies = [{"permission_policy": None} | session.agent_of(self._db, thread) for thread in threads]
            agents = zip(threads, bodies, strict=True)
            self._paths[look] = [_Agent(thread.agent_id, body, thread.inline) for thread, body in agents]
        return self._paths[look]

    def _compile(self, path: "list[_Agent]", tool: str) -> SessionPolicies:
        policies: SessionPolicies | None = None
        for agent in path:
            policies = self._compile_one(agent, tool, policies)
        assert policies, "a path has the call's own thread"
        return policies.in_session(git_written=False, inline=path[-1].inline)

    def _compile_one(self, agent: "_Agent", tool: str, parent: SessionPolicies | None) -> SessionPolicies:
        trial, workspace, fallback = self._trial, dict(self._policies), settings().default_permission
        body, own_policy = agent.body, None
        behind = listings_of(self._db, body)
        concerns = trial.agent_id in {None, agent.id}
        if trial.policy and trial.tool:
            own_policy = trial.policy if concerns else None
        elif trial.agent_id and concerns:
            below = default_of(workspace["policy"], fallback)
            body = body | {"permission_policy": trial.policy or added(trial.rule, body["permission_policy"], below)}
        elif not trial.agent_id:
            workspace["policy"] = trial.policy or added(trial.rule, workspace["policy"], fallback)
        return SessionPolicies(with_tool(body, tool, own_policy), workspace, fallback, behind, parent)


@dataclass(frozen=True)
class _Agent:
    """The agent of one thread."""

    id: str
    body: dict[str, Any]
    inline: bool


def added(rule: Mapping[str, Any] | None, policy: Mapping[str, Any] | None, fallback: Effect) -> dict[str, Any]:
    """Return the policy with one more rule and the same default. `fallback` is the default if there is no policy."""
    assert rule, "a trial is of a rule or of a policy"
    fields = {key: policy[key] for key in ("unknown_programs",) if key in policy} if policy else {}
    rules, default = (policy or {}).get("rules", []), default_of(policy, fallback)
    if policy and not rules and default == "deny":
        return dict(policy)  # nothing overrides it
    if len(rules) >= MAX_RULES:
        raise Invalid("rule", f"there are {MAX_RULES} rules already; none can be added.")
    return {"type": "rules", "rules": [*rules, rule], "default": default, **fields}


def default_of(policy: Mapping[str, Any] | None, fallback: Effect) -> Effect:
    """Return the effect of a stored policy for calls that no rule matches."""
    if policy is None:
        return fallback
    always: dict[Any, Effect] = {"always_allow": "allow", "always_ask": "ask"}
    default: Effect = policy.get("default") or always.get(policy.get("type"), "deny")
    return default
