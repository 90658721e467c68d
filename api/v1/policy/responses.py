"""Responses about policies: the workspace's policy, the explanation of a verdict, the simulation of a policy on past calls."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, SerializeAsAny

from api.door.requests import without_defaults
from api.door.responses import AgentId, ResponseModel, SessionId, Time
from models.flow.judge.explanations import Explanation
from models.flow.judge.past_calls import Then
from models.flow.judge.simulations import Side, SimulatedExample, SimulatedOutcome, Trial
from models.operate.insights.suggestions import Suggestions
from models.pure import policy
from models.pure.offer import GrantScope, Offer, Option, Widest
from models.pure.policy import Effect, Source, covers, rule_as_json
from models.session.approval.grant import Grant
from models.session.event.fields import ApprovalId, EventId, GrantId
from models.workspace.row import Workspace


class AlwaysPolicy(ResponseModel):
    """Every call is allowed, or every call asks."""

    type: Literal["always_allow", "always_ask"]


class Condition(ResponseModel):
    """A test of one argument, by one operator."""

    model_config = ConfigDict(json_schema_extra=without_defaults)

    path: str
    equals: Any = None
    one_of: list[Any] = Field([])
    glob: str = ""
    path_glob: str = ""
    regex: str = ""
    gt: float = 0
    gte: float = 0
    lt: float = 0
    lte: float = 0
    min_length: int = 0
    max_length: int = 0
    exists: bool = True
    destroys: bool = True
    command: str = ""


class RuleMatch(ResponseModel):
    """The calls to which a rule applies."""

    tool: str
    input: list[Condition] = Field([])
    input_sha256: str | None = None


class Rule(ResponseModel):
    """One rule. Its match is a text if a text can express it, else an object."""

    effect: Effect
    match: str | RuleMatch = Field(examples=["bash(git push *)"])
    reason: str | None = None
    priority: int = 0


class AutoPolicy(ResponseModel):
    """Rules, then `default` for all other calls."""

    type: Literal["auto"]
    rules: list[Rule]
    default: Effect
    unknown_programs: Literal["allow"] | None = None
    """`allow` if the rules of this policy may allow unknown programs. Left out by default: then calls of unknown programs ask."""


Policy = Annotated[AlwaysPolicy | AutoPolicy, Field(discriminator="type")]


class EscalationStep(ResponseModel):
    """The people who may decide after the previous deadline has passed, and the time that they have."""

    approvers: list[str]
    timeout_seconds: float


class ApprovalSettings(ResponseModel):
    """The settings of approvals where a tool's own `approval` leaves a field out. Demands on approvers add up over all levels, and
    only an option that all levels offer is offered."""

    timeout_seconds: float | None = None
    on_timeout: Literal["deny", "end_run", "escalate"] | None = None
    remind_after_seconds: float | None = None
    approvers: list[str] | None = None
    """Who may decide: `user:ID` and `group:ID`."""
    required_approvals: int | None = None
    four_eyes: bool | None = None
    escalate_to: list[EscalationStep] | None = None
    then: Literal["deny", "end_run"] | None = None
    options: list[Option] | None = None
    """The decisions that people may make, beside `deny`."""
    default_scope: GrantScope | None = None
    widest_match: Widest | None = None


class ToolApprovalSettings(ApprovalSettings):
    """The settings of the approvals of a tool's calls."""

    on_timeout: Literal["deny", "end_run", "escalate", "allow"] | None = None  # type: ignore[assignment]
    prompt: str | None = None


class ModelConfigDefaults(ResponseModel):
    """The defaults for the models of the workspace's agents."""

    fallbacks: list[str] | None = None
    exclude_providers: list[str] | None = None


class WorkspaceWords(ResponseModel):
    """The workspace's own chat words, in the form in which messages are compared with them."""

    allow: list[str] | None = None
    allow_all: list[str] | None = None
    deny: list[str] | None = None


class Retention(ResponseModel):
    """How long rows are kept, in days."""

    audit_days: int | None = None
    """Left out: for ever."""
    archived_days: int | None = None
    """Left out: for ever."""
    archive_after_days: int | None = None
    """Left out: 30. Null: never archived."""


class WorkspacePolicy(ResponseModel):
    """The policy for all agents of the workspace."""

    type: Literal["policy"]
    permission_policy: SerializeAsAny[Policy | None]
    approval: SerializeAsAny[ApprovalSettings | None]
    model: SerializeAsAny[ModelConfigDefaults | None]
    chat_words: SerializeAsAny[WorkspaceWords | None]
    denial_reasons: list[str] | None
    retention: SerializeAsAny[Retention | None]

    @classmethod
    def of(cls, row: Workspace) -> Self:
        """Return the policy of a workspace."""
        return cls.from_row(row, permission_policy=row.policy)


class ExplainedRule(Rule):
    """A rule that contributed to a verdict."""

    source: Source
    id: str | None
    """The grant's id, if the rule belongs to a grant."""
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    """The calls to which the rule applies, in words."""

    @classmethod
    def of(cls, rule: policy.Rule) -> Self:
        """Return a rule with its origin."""
        grant_id = rule.id if rule.source == "grant" else None
        return cls.from_row(rule, **rule_as_json(rule), id=grant_id, covers=covers(rule))


class ExplainedLine(ResponseModel):
    """A command line, as the policy parsed it."""

    path: str = Field(examples=["/command"])
    """The JSON Pointer to the line in the input."""
    commands: list[list[str]] = Field(examples=[[["git", "push", "origin", "main"]]])
    """Every simple command, split into words."""
    doubt: str | None
    """The reason why the line may contain further commands. If set, patterns of commands allow nothing."""


class ExplainedGrant(ResponseModel):
    """A live grant about the tool."""

    id: GrantId
    scope: Literal["session", "always"]
    covers: str = Field(examples=["every bash command that starts with `git push`"])
    uses: int
    max_uses: int | None
    expires_at: Time | None
    decides: bool
    """Whether the grant contributed to the verdict."""
    not_offered: str | None
    """Why the grant allows nothing: the tool no longer offers such a grant. Null if the tool does."""

    @classmethod
    def of(cls, row: Grant, offer: Offer, *, decides: bool) -> Self:
        """Return a grant about a tool with this offer."""
        return cls.from_row(row, decides=decides, not_offered=row.why_not_offered(offer) or None)


class PolicyExplanation(ResponseModel):
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
    asks. Calls of such programs ask, unless the policy sets `"unknown_programs": "allow"`. `rule` names the reason."""
    commands: list[ExplainedLine]
    grants: list[ExplainedGrant] = Field(examples=[[]])
    """The live grants of the session about the tool, if the request names a session."""

    @classmethod
    def of(cls, tool: str, explanation: Explanation) -> Self:
        """Return the explanation of a verdict on a call of `tool`."""
        verdict = explanation.verdict
        first = verdict.rules[0] if verdict.rules else None
        deciding = {rule.id for rule in verdict.rules if rule.source == "grant"}
        lines = explanation.lines.items()
        return cls.from_row(
            verdict,
            tool=tool,
            source=first.source if first else "default",
            covers=covers(first) if first else None,
            rules=[ExplainedRule.of(rule) for rule in verdict.rules],
            unknown_programs=list(verdict.unknown),
            commands=[
                ExplainedLine.from_row(line, path=path, commands=[list(words) for words in line.commands]) for path, line in lines
            ],
            grants=[ExplainedGrant.of(grant, explanation.offer, decides=grant.id in deciding) for grant in explanation.grants],
        )


class SimulatedCall(ResponseModel):
    """One past call."""

    tool_use_id: EventId
    session_id: SessionId
    tool: str = Field(examples=["bash"])
    input: dict[str, Any] | None = Field(examples=[{"command": "git push origin main"}])
    """The input that the model proposed, with secrets masked. Null for a long input."""
    created_at: Time
    rule: str = Field(examples=["workspace rule: deny bash(git push *)"])
    """The rule that would have decided."""
    rule_then: str = Field(examples=["default: ask"])
    """The rule that decided when the call was made."""
    then: Then
    """The outcome of the call's approval at that time, whether or not the call ran afterwards."""

    @classmethod
    def of(cls, example: SimulatedExample) -> Self:
        """Return a past call, with the rule that would have decided."""
        call = example.call
        about = {"rule": example.rule, "rule_then": call.rule, "then": example.then}
        return cls.from_row(call, tool_use_id=call.id, tool=call.name, input=example.masked_input, **about)


class SimulatedSide(ResponseModel):
    """The calls that would have had one effect."""

    calls: int
    then: dict[Then, int]
    """The number of these calls by their outcome at that time."""
    examples: list[SimulatedCall]
    """Some of these calls. Calls whose effect changes come first."""

    @classmethod
    def of(cls, side: Side) -> Self:
        """Return the calls of one effect."""
        return cls.from_row(side, then=dict(side.then), examples=[SimulatedCall.of(example) for example in side.examples])


class PolicySimulation(ResponseModel):
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

    @classmethod
    def of(cls, trial: Trial, outcome: SimulatedOutcome) -> Self:
        """Return the outcome of a simulation."""
        sides = {effect: SimulatedSide.of(side) for effect, side in outcome.sides.items()}
        return cls.from_row(outcome, since=trial.since, **sides)


class PolicySuggestion(ResponseModel):
    """A rule for an agent that would have answered questions as people did, and contradicts none of their decisions."""

    type: Literal["policy_suggestion"]
    agent_id: AgentId
    agent_name: str = Field(examples=["Release captain"])
    rule: Rule
    covers: str = Field(examples=["every bash command that starts with `npm test`"])
    """The calls to which the rule applies, in words."""
    answers: int
    """Questions that the rule would have answered."""
    questions: int
    """All questions of the agent among the calls, without those that its rules of now would answer."""
    newest_at: Time
    """When the newest of the calls was decided that the rule would have answered."""
    approval_ids: list[ApprovalId]
    """Some of these calls' approvals, the newest first."""


class PolicySuggestions(ResponseModel):
    """Suggestions by the newest decided calls of the workspace, those that answer the most questions first."""

    data: list[PolicySuggestion]
    looked_at: int
    """Decided approvals that were read: at most 1,000."""
    since: Time | None
    """When the oldest of them was decided."""
    complete: bool
    """False if the time ended before each possible rule was tried."""

    @classmethod
    def of(cls, suggestions: Suggestions) -> Self:
        """Return the suggestions."""
        data = [PolicySuggestion.from_row(one) for one in suggestions.rules]
        return cls.from_row(suggestions, data=data)
