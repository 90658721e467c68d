"""Answers about policies: the workspace's policy, the explanation of a verdict, the simulation of a policy on past calls."""

from typing import Any, Literal

from pydantic import Field

from api.answers.agents import AnsweredDefaults, AnsweredPolicy, AnsweredRule
from api.answers.base import Answer, EventId, GrantId, SessionId, Time
from models.flow.past_calls import Then
from models.pure.policy import Effect, Source


class WorkspacePolicy(Answer):
    """The policy for all agents of the workspace."""

    type: Literal["policy"]
    permission_policy: AnsweredPolicy | None
    approval: AnsweredDefaults | None


class ExplainedRule(AnsweredRule):
    """A rule that contributed to a verdict."""

    source: Source
    id: str | None
    """The grant's id, if the rule belongs to a grant."""
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """The calls to which the rule applies, in words."""


class ExplainedLine(Answer):
    """A command line, as the policy parsed it."""

    path: str = Field(examples=["/command"])
    """The JSON Pointer to the line in the input."""
    commands: list[list[str]] = Field(examples=[[["git", "push", "origin", "main"]]])
    """Every simple command, split into words."""
    doubt: str | None
    """Why there may be further commands. If set, patterns of commands allow nothing."""


class ExplainedGrant(Answer):
    """A live grant about the tool."""

    id: GrantId
    scope: Literal["session", "always"]
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    uses: int
    max_uses: int | None
    expires_at: Time | None
    decides: bool
    """Whether the grant contributed to the verdict."""


class PolicyExplanation(Answer):
    """The verdict on a call. The input is not validated against the tool's schema here."""

    type: Literal["policy_explanation"]
    tool: str = Field(examples=["bash"])
    effect: Effect = Field(examples=["ask"])
    rule: str = Field(examples=["agent rule: ask bash(git push *)"])
    """The rule that decided, as approvals and the audit name it."""
    source: Source | Literal["default"]
    """The origin of the rule."""
    covers: str | None
    rules: list[ExplainedRule]
    """All rules that contributed to the verdict; none for a default. Several rules may allow the parts of one command line."""
    doubt: str | None
    """The reason for a stricter verdict: the command line could not be parsed with certainty, or its programs are unknown."""
    unknown_programs: list[str] = Field(examples=[[]])
    """Programs of the command line that no rule names and that may run other programs. Listed if a rule about commands denies or
    asks. Such programs ask, unless the policy sets `"unknown_programs": "allow"`; `rule` names the reason."""
    commands: list[ExplainedLine]
    grants: list[ExplainedGrant] = Field(examples=[[]])
    """The live grants of the session about the tool, if the request names a session."""


class SimulatedCall(Answer):
    """One past call."""

    tool_use_id: EventId
    session_id: SessionId
    tool: str = Field(examples=["bash"])
    input: dict[str, Any] | None = Field(examples=[{"command": "git push origin main"}])
    """The input that the model proposed, with secrets masked. Null if it is long."""
    created_at: Time
    rule: str = Field(examples=["workspace rule: deny bash(git push *)"])
    """The rule that would have decided."""
    rule_then: str = Field(examples=["default: ask"])
    """The rule that decided when the call was made."""
    then: Then
    """The outcome of the call's approval at that time, whether or not the call ran afterwards."""


class SimulatedSide(Answer):
    """The calls that would have had one effect."""

    calls: int
    then: dict[Then, int]
    """The number of these calls by their outcome at that time."""
    examples: list[SimulatedCall]
    """Some of these calls. Calls whose effect changes come first."""


class PolicySimulation(Answer):
    """The effects of the proposed rule or policy on past calls, newest sessions first. All other rules are today's."""

    type: Literal["policy_simulation"]
    since: Time
    looked_at: int
    masked: int
    """Calls whose inputs were evaluated with masked secrets, since the key lacks the scope `reveal`."""
    complete: bool
    """Whether the simulation covers all calls since `since`. It is limited in calls and in seconds."""
    changed: int
    """Calls whose effect changes."""
    allow: SimulatedSide
    ask: SimulatedSide
    deny: SimulatedSide
