"""Suggests rules by the newest calls that people decided: what they always allowed, and what they always denied.

A rule is suggested for the agent that asked. It contradicts no decision among these calls, and an allow covers nothing that may
destroy something, and no call for which the settings demand certain people. All other rules count as they do today, in a new
session; a call that would not ask today is no question any more. Inputs are judged with their secrets masked.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple

from models.database.rows import Db
from models.flow.judge.explanations import with_tool
from models.flow.judge.simulations import added, default_of
from models.operate.insights.candidates import Candidate, candidates, is_harmless
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.policy.session_policies import SessionPolicies
from models.pure.ahead import Pauses
from models.pure.policy import Effect, covers, rule_of
from models.pure.shell import Words, read
from models.session.approval.columns import is_by_person
from models.session.approval.kinds import tool_call
from models.session.thread.row import own_id
from models.settings import settings
from models.workspace.agent import AgentVersion
from models.workspace.row import Workspace
from models.workspace.toolset import ToolListing, listings_of

NEWEST = 1000
"""Decided calls that are looked at, so that it takes the same time however many there are."""
MOST = 20
"""Most suggestions."""
_LEAST: dict[Effect, int] = {"allow": 5, "deny": 3}
"""The fewest decisions that speak for a rule."""
_MOST_AGENTS = 20
_MOST_CANDIDATES = 40
"""Of one agent: those that the most calls give rise to."""
_LONGEST = 8_000
"""Bytes of the longest input that is read. A longer one that was denied speaks against every rule about its tool."""
_SECONDS = 3.0

Outcome = Literal["allowed", "denied", "changed", "expired"]
"""What people said: `changed` if they edited the input, or answered in the tool's place. `expired` if they said nothing."""


@dataclass(frozen=True)
class Suggestion:
    """A rule for an agent, with what it would have done."""

    agent_id: str
    agent_name: str
    rule: dict[str, Any]
    covers: str
    """The calls in words."""
    answers: int
    """Questions that the rule would have answered."""
    questions: int
    """All questions of the agent among the calls, as many as would be asked today."""
    newest_at: datetime
    """When the newest of these calls was decided."""
    approval_ids: Sequence[str]
    """Some of the approvals, the newest first."""


@dataclass
class Suggestions:
    """The suggestions, those that answer the most questions first."""

    looked_at: int = 0
    since: datetime | None = None
    """When the oldest of these calls was decided; None without any."""
    complete: bool = True
    """False if the time ended before every rule was tried."""
    rules: list[Suggestion] = field(default_factory=list)


@dataclass(frozen=True)
class _Ask:
    """One call that people decided."""

    approval_id: str
    tool: str
    arguments: Mapping[str, Any] | None
    """With secrets masked. None for a long input."""
    sha256: str
    outcome: Outcome
    decided_at: datetime
    is_own: bool
    """True for a call of a session's own thread: only its rules are those of the agent alone."""

    @cached_property
    def commands(self) -> tuple[Words, ...]:
        """The commands of a call of `bash`."""
        command = (self.arguments or {}).get("command")
        return read(command).commands if self.tool == "bash" and isinstance(command, str) else ()

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The rules that the call gives rise to."""
        return candidates(self.tool, self.arguments) if self.arguments is not None else []


def suggestions(db: Db, agent_id: str | None = None) -> Suggestions:
    """Return the suggestions for all agents, or for one. Reads at most NEWEST calls, and takes a bounded time."""
    result = Suggestions()
    by_agent: dict[str, list[_Ask]] = {}
    for row in (_Row(*values) for values in db.rows(_NEWEST_DECIDED, most=NEWEST, longest=_LONGEST)):
        result.looked_at, result.since = result.looked_at + 1, row.decided_at
        if row.agent_id and agent_id in {None, row.agent_id} and (ask := row.ask):
            by_agent.setdefault(row.agent_id, []).append(ask)
    ids = sorted(by_agent, key=lambda id_: -len(by_agent[id_]))[:_MOST_AGENTS]
    clock = _Clock()
    for agent in _Agent.each(db, ids):
        result.rules += _of_agent(agent, by_agent[agent.id], clock)
    result.complete = not clock.is_over
    result.rules = sorted(result.rules, key=lambda rule: (-rule.answers, rule.agent_name, rule.covers))[:MOST]
    return result


class _Row(NamedTuple):
    """One row of `_NEWEST_DECIDED`."""

    decided_at: datetime
    approval_id: str
    agent_id: str | None
    session_id: str
    thread_id: str
    is_of_run: bool
    """True if the question was whether a call may run."""
    tool: str
    input: str | None
    """As JSON, with secrets masked."""
    sha256: str
    status: str
    decided_by: str | None
    is_edited: bool

    @property
    def ask(self) -> _Ask | None:
        """The call; None if it was no question to people, or is of an agent without an id."""
        outcome = _outcome(self.status, self.decided_by, self.is_edited)
        if not self.is_of_run or outcome is None or self.agent_id is None:
            return None
        arguments = json.loads(self.input) if self.input else None
        is_own = self.thread_id == own_id(self.session_id)
        return _Ask(self.approval_id, self.tool, arguments, self.sha256, outcome, self.decided_at, is_own)


def _outcome(status: str, decided_by: str | None, is_edited: bool) -> Outcome | None:
    """Return what people said; None if nobody was to say anything, as for a call that a grant covers."""
    if status == "expired":
        return "expired"
    if not is_by_person(decided_by):
        return None
    outcomes: dict[str, Outcome] = {"allowed": "changed" if is_edited else "allowed", "denied": "denied", "answered": "changed"}
    return outcomes.get(status)


@dataclass
class _Clock:
    """The time that is left for all agents."""

    until: float = field(default_factory=lambda: time.monotonic() + _SECONDS)
    pauses: Pauses = field(default_factory=Pauses)
    is_over: bool = False

    def tick(self) -> bool:
        """True while there is time. Lets other greenlets run now and then."""
        self.pauses.pause_if_due()
        self.is_over = self.is_over or time.monotonic() > self.until
        return not self.is_over


@dataclass
class _Agent:
    """An agent's newest version, judged tool by tool."""

    id: str
    body: dict[str, Any]
    workspace: dict[str, Any]
    listings: dict[str, ToolListing]

    @classmethod
    def each(cls, db: Db, ids: Sequence[str]) -> Iterator["_Agent"]:
        """Yield the agents with these ids that are not archived."""
        workspace = Workspace.policies(db)
        versions = db.find(AgentVersion, _HEADS, ids=list(ids))
        for version in sorted(versions, key=lambda version: ids.index(version.agent_id)):
            yield cls(version.agent_id, version.body, workspace, listings_of(db, version.body))

    @cached_property
    def tools(self) -> dict[str, EffectiveTool]:
        """The agent's tools by name."""
        return {tool.name: tool for tool in effective_tools(self.body, self.listings)}

    def policies(self, tool: str, rule: Mapping[str, Any] | None = None) -> SessionPolicies:
        """Return the policies for calls of a tool in a new session, with one more rule of the agent."""
        body = with_tool(self.body, tool)
        if rule:
            own = body.get("permission_policy")
            below = default_of(self.workspace["policy"], settings().default_permission)
            body = body | {"permission_policy": added(rule, own, below)}
        return SessionPolicies.of(body, self.workspace, self.listings)


def _of_agent(agent: _Agent, asks: Sequence[_Ask], clock: _Clock) -> list[Suggestion]:
    """Return the suggestions for an agent. No call is answered by two of them."""
    trials = _Trials(agent, [ask for ask in asks if ask.tool in agent.tools], clock)
    result: list[Suggestion] = []
    for effect, least in _LEAST.items():
        trial_answers = [(candidate, trials.answers(candidate, effect)) for candidate in trials.candidates(effect)]
        trial_answers.sort(key=lambda pair: (-len(pair[1]), pair[0].width))
        over: set[str] = set()
        for candidate, answers in trial_answers:
            ids = {ask.approval_id for ask in answers}
            if over.isdisjoint(ids) and sum(ask.outcome == _SPEAKS_FOR[effect] for ask in answers) >= least:
                over |= ids
                result.append(trials.suggestion(candidate, effect, answers))
    return result


class _Trials:
    """Rules that are tried on the calls of one agent."""

    def __init__(self, agent: _Agent, asks: Sequence[_Ask], clock: _Clock) -> None:
        self._agent, self._asks, self._clock = agent, asks, clock
        self._verdicts: dict[tuple[str, str], Effect] = {}
        self._policies = {tool: agent.policies(tool) for tool in {ask.tool for ask in asks}}
        self._questions = [ask for ask in asks if ask.is_own and self._judge(self._policies[ask.tool], ask) == "ask"]

    def candidates(self, effect: Effect) -> list[Candidate]:
        """Return the rules to try: those that enough decisions give rise to."""
        outcome = _SPEAKS_FOR[effect]
        count = Counter(candidate for ask in self._questions if ask.outcome == outcome for candidate in ask.candidates)
        enough = [candidate for candidate, number in count.most_common() if number >= _LEAST[effect]]
        return [candidate for candidate in enough if effect == "deny" or self._is_harmless(candidate)][:_MOST_CANDIDATES]

    def answers(self, candidate: Candidate, effect: Effect) -> list[_Ask]:
        """Return the questions that the rule would have answered; none if it contradicts a decision, or if the time is over."""
        self._verdicts.clear()
        policies = self._agent.policies(candidate.tool, _rule(candidate, effect))
        of_tool = [ask for ask in self._asks if ask.tool == candidate.tool]
        for ask in of_tool:
            if ask.outcome not in {_SPEAKS_FOR[effect], "expired"} and self._judge(policies, ask) in {effect, None}:
                return []
        questions = [ask for ask in self._questions if ask.tool == candidate.tool and candidate.may_concern(ask.commands)]
        answers = [ask for ask in questions if self._judge(policies, ask) == effect]
        return [] if self._clock.is_over else answers

    def suggestion(self, candidate: Candidate, effect: Effect, answers: Sequence[_Ask]) -> Suggestion:
        """Return the suggestion of a rule."""
        rule = _rule(candidate, effect)
        return Suggestion(
            agent_id=self._agent.id,
            agent_name=self._agent.body["name"],
            rule=rule,
            covers=covers(rule_of(rule, where="rule")),
            answers=len(answers),
            questions=len(self._questions),
            newest_at=max(ask.decided_at for ask in answers),
            approval_ids=[ask.approval_id for ask in answers][:3],
        )

    def _is_harmless(self, candidate: Candidate) -> bool:
        """True if an allow may be suggested: also by the tool's settings, which may demand certain people or exact inputs."""
        tool = candidate.tool
        quorum = self._policies[tool].quorum(tool)
        may_be_allowed = not quorum.needs_people and quorum.offer.gives("always", exact=False)
        return may_be_allowed and is_harmless(candidate, self._agent.tools[tool])

    def _judge(self, policies: SessionPolicies, ask: _Ask) -> Effect | None:
        """Return the effect on a call; None if that is not known. Calls with the same input are judged once."""
        if ask.arguments is None or not self._clock.tick():
            return None
        key = (ask.tool, ask.sha256)
        if key not in self._verdicts:
            self._verdicts[key] = policies.judge(ask.tool, ask.arguments).effect
        return self._verdicts[key]


def _rule(candidate: Candidate, effect: Effect) -> dict[str, Any]:
    return {"effect": effect, "match": candidate.text}


_SPEAKS_FOR: dict[Effect, Outcome] = {"allow": "allowed", "deny": "denied"}
_NEWEST_DECIDED = f"""
    SELECT decided_at, id, agent_id, session_id, thread_id, {tool_call.KIND.sql}, tool,
        CASE WHEN octet_length(input) <= %(longest)s THEN coalesce(shown_input::text, input) END,
        input_sha256, status, decided_by, decided_sha256 IS NOT NULL
    FROM (
        SELECT * FROM approval WHERE workspace_id = current_setting('assent.workspace') AND decided_at IS NOT NULL
        ORDER BY decided_at DESC LIMIT %(most)s
    ) newest
    ORDER BY decided_at DESC
"""  # noqa: S608 - a condition of our own
_HEADS = """
    WHERE (agent_id, version) IN (SELECT id, version FROM agent WHERE id = ANY(%(ids)s) AND archived_at IS NULL)
"""
