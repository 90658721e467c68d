"""The policy as we answer it: what holds in a workspace, why a call gets its verdict, what a proposal would have done."""

from typing import Any, Literal

from pydantic import Field

from api.answers.agents import AnsweredDefaults, AnsweredPolicy, AnsweredRule
from api.answers.base import Answer, EventId, GrantId, SessionId, Time
from models.flow.past_calls import Then
from models.pure.policy import Effect, Source


class WorkspacePolicy(Answer):
    """What holds for all agents of the workspace."""

    type: Literal["policy"]
    permission_policy: AnsweredPolicy | None
    approval: AnsweredDefaults | None


class ExplainedRule(AnsweredRule):
    """A rule behind a verdict."""

    source: Source
    id: str | None
    """The grant's id, if the rule is a grant's."""
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """Which calls it is about, in words."""


class ExplainedLine(Answer):
    """A command line, as it was read."""

    path: str = Field(examples=["/command"])
    """The JSON Pointer to the line in the input."""
    commands: list[list[str]] = Field(examples=[[["git", "push", "origin", "main"]]])
    """Every simple command, split into words."""
    doubt: str | None
    """Why it is not sure that these are all; then patterns of commands allow nothing."""


class ExplainedGrant(Answer):
    """A live grant about the tool."""

    id: GrantId
    scope: Literal["session", "always"]
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    uses: int
    max_uses: int | None
    expires_at: Time | None
    decides: bool
    """Whether it is behind the verdict."""


class PolicyExplanation(Answer):
    """The verdict on a call. Whether the input fits the tool's schema is looked at before, and not here."""

    type: Literal["policy_explanation"]
    tool: str = Field(examples=["bash"])
    effect: Effect = Field(examples=["ask"])
    rule: str = Field(examples=["agent rule: ask bash(git push *)"])
    """The rule that decided, in the words of approvals and of the audit."""
    source: Source | Literal["default"]
    """The origin of the rule."""
    covers: str | None
    rules: list[ExplainedRule]
    """All behind the verdict, none for a default: several may allow the parts of one command line."""
    doubt: str | None
    """Why a command line could not be read surely or its programs are not known, where that made the verdict stricter."""
    unknown_programs: list[str] = Field(examples=[[]])
    """Programs of the command line that may run others and that no rule names, where a rule about commands denies or asks. They
    ask, or are allowed by `"unknown_programs": "allow"`: `rule` says which."""
    commands: list[ExplainedLine]
    grants: list[ExplainedGrant] = Field(examples=[[]])
    """Those of the session that were considered, if one was named."""


class SimulatedCall(Answer):
    """One past call."""

    tool_use_id: EventId
    session_id: SessionId
    tool: str = Field(examples=["bash"])
    input: dict[str, Any] | None = Field(examples=[{"command": "git push origin main"}])
    """As it was proposed, secrets masked; null where it is long."""
    created_at: Time
    rule: str = Field(examples=["workspace rule: deny bash(git push *)"])
    """The rule that would have decided."""
    rule_then: str = Field(examples=["default: ask"])
    """The rule that decided then."""
    then: Then
    """The outcome of its question, whether or not the call ran afterwards."""


class SimulatedSide(Answer):
    """The calls that would have had one effect."""

    calls: int
    then: dict[Then, int]
    """How many of them had which end."""
    examples: list[SimulatedCall]
    """A few, those first that had another effect then."""


class PolicySimulation(Answer):
    """What the proposal would have answered to past calls, those of the newest sessions first, were all else as it is today."""

    type: Literal["policy_simulation"]
    since: Time
    looked_at: int
    masked: int
    """Calls whose inputs were judged with their secrets masked, since the key lacks the scope `reveal`."""
    complete: bool
    """Whether these are all calls since then: a simulation is bounded in calls and in seconds."""
    changed: int
    """Calls that had another effect then."""
    allow: SimulatedSide
    ask: SimulatedSide
    deny: SimulatedSide
