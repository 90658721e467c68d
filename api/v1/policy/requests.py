"""Requests about policies: policies and rules, and the bodies of the policy's own routes.

`models.pure.policy` parses policies. The models of policies in this file only describe them in the API's document.
"""

import re
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator, StringConstraints, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from api.door.examples import IDS
from api.door.requests import Body, Id, QueryString, Sha256, Version, examples, without_defaults
from api.v1.model import ModelDefaults
from api.v1.policy.approval_settings import ApprovalDefaults
from models.pure import chat, policy
from models.pure.ahead import Pauses
from models.pure.json.canonical import canonical
from models.pure.policy import Effect
from models.pure.policy.rules import MAX_CHOICES, MAX_CONDITIONS, MAX_PRIORITY, MAX_REGEX, MAX_RULES, MAX_TEXT
from models.workspace import denial_reasons

INPUT_BYTES = 100_000
"""Longest input of a call to explain. Calls may be longer, but a thousand rules would take long to judge a longer input."""
_FIELD = re.compile(r"([\w.-]+): (.*)", re.DOTALL)

_Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
_Regex = Annotated[str, StringConstraints(min_length=1, max_length=MAX_REGEX)]
_Count = Annotated[int, Field(ge=0)]


class PolicyCondition(Body):
    """A test of one argument. All operators must hold."""

    model_config = ConfigDict(json_schema_extra=without_defaults)

    path: Annotated[str, StringConstraints(max_length=MAX_TEXT)] = Field(description="A JSON Pointer, such as /amount.")
    equals: Any = None
    one_of: list[Any] = Field([], min_length=1, max_length=MAX_CHOICES)
    glob: _Text = "*"
    path_glob: _Text = "**"
    regex: _Regex = Field(
        ".*", description="RE2. In a rule that allows it must match the whole argument; in other rules, a part of the argument."
    )
    gt: float = 0
    gte: float = 0
    lt: float = 0
    lte: float = 0
    min_length: _Count = 0
    max_length: _Count = 0
    exists: bool = True
    destroys: bool = Field(
        True, description="Whether a command of the line may take away what nobody brings back, such as `rm` or `git push --force`."
    )
    command: _Text = Field("*", description="A pattern of simple commands, such as `git status *`.")


class PolicyMatch(Body):
    """The calls that a rule covers. All fields must match."""

    tool: str = Field(description="A glob over tool names.", max_length=200)
    input: list[PolicyCondition] = Field([], max_length=MAX_CONDITIONS)
    input_sha256: Sha256 | None = None


class PolicyRule(Body):
    """One rule. Rules that deny come first, then rules that ask, then rules that allow."""

    effect: Effect
    match: _Text | PolicyMatch = Field(
        description="A text such as `bash(git push *)`, `read(src/**)`, `mcp__github__*`, or an object."
    )
    reason: _Text | None = Field(None, description="Shown to people, and to the model when the rule denies a call.")
    priority: int = Field(
        0,
        ge=-MAX_PRIORITY,
        le=MAX_PRIORITY,
        description="Of matching rules with one effect, the rule with the highest priority is named.",
    )


class Always(Body):
    """One effect for every call."""

    type: Literal["always_allow", "always_ask", "always_deny"]


class Ruled(Body):
    """Rules, then `default` for all other calls. Responses have the type `auto`. No model judges here."""

    type: Literal["auto", "rules"]
    rules: list[PolicyRule] = Field([], max_length=MAX_RULES)
    default: Effect
    unknown_programs: Literal["ask", "allow"] = Field(
        "ask",
        description="While a rule about commands denies or asks, an allow for everything covers only programs that are known to "
        "run no others. Every other program asks, unless a rule names it. `allow` removes this limit for the rules of this "
        "policy: a program can then run commands that the rules deny.",
    )


def _policy(value: Any) -> dict[str, Any]:
    """Return a policy in the normal form that responses use."""
    # A type that is not a string cannot be looked up.
    if isinstance(value, dict) and not isinstance(value.get("type", ""), str):
        raise _wrong("type: must be always_allow, always_ask, always_deny or rules", value)
    _compile_with_pauses(value)
    try:
        return policy.policy_as_json(policy.policy_of(value))
    except ValueError as error:
        raise _wrong(str(error), value) from None


def _compile_with_pauses(value: Any) -> None:
    """Compile a policy's rules with pauses, so that the compiled rules are cached: a thousand slow ones take ten seconds."""
    rules = value.get("rules") if isinstance(value, dict) else None
    pauses = Pauses()
    with suppress(ValueError):
        for rule in rules if isinstance(rules, list) and len(rules) <= MAX_RULES else ():
            policy.rule_of(rule)
            pauses.pause_if_due()


def _rule(value: Any) -> dict[str, Any]:
    """Return a rule in the normal form that responses use."""
    try:
        return policy.rule_as_json(policy.rule_of(value, where="rule"))
    except ValueError as error:
        raise _wrong(str(error).removeprefix("rule: ").removeprefix("rule."), value) from None


def _wrong(text: str, value: Any) -> ValidationError:
    """Return the error, with the path of its field from the beginning of `text`."""
    field = _FIELD.fullmatch(text)
    path, text = field.groups() if field else ("", text)
    parts = tuple(int(part) if part.isdecimal() else part for part in path.split(".") if part)
    error = PydanticCustomError("policy", "{text}", {"text": text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."})
    return ValidationError.from_exception_data("policy", [InitErrorDetails(type=error, loc=parts, input=value)])


Policy = Annotated[
    dict[str, Any],
    PlainValidator(_policy, json_schema_input_type=Annotated[Always | Ruled, Field(discriminator="type")]),
]
Rule = Annotated[dict[str, Any], PlainValidator(_rule, json_schema_input_type=PolicyRule)]


_OwnWords = list[Annotated[str, StringConstraints(min_length=1, max_length=chat.LONGEST_WORD)]] | None


class ChatWords(Body):
    """Words by which people decide calls in chats, beside the built-in ones. Case does not matter, and a word has one meaning."""

    allow: _OwnWords = Field(None, description="Words that mean `approve`.", max_length=chat.MOST_WORDS)
    allow_all: _OwnWords = Field(None, description="Words that mean `approve all`.", max_length=chat.MOST_WORDS)
    deny: _OwnWords = Field(None, description="Words that mean `reject`.", max_length=chat.MOST_WORDS)

    def normal(self) -> dict[str, list[str]]:
        """Return the words as the workspace stores them. Raises ValidationError for a word with two meanings or none."""
        try:
            return chat.check(self.model_dump(exclude_none=True))
        except ValueError as error:
            raise _wrong(str(error), None) from None


def _check_words(words: ChatWords) -> ChatWords:
    words.normal()
    return words


_Days = Annotated[int, Field(ge=1, le=36_500)]


_Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=denial_reasons.LONGEST)]


class RetentionSettings(Body):
    """How long rows are kept, in days."""

    audit_days: _Days | None = None
    """Acts of the audit. `assent audit cut` cuts older ones, behind an anchor. Left out or null: kept for ever."""
    archive_after_days: _Days | None = 30
    """Events, replies, inputs and results of sessions at rest. Older ones go to the archive. Left out: 30. Null: never."""

    archived_days: _Days | None = None
    """Sessions that are archived whole. If their last event is older, they are deleted. Left out or null: kept for ever."""

    def normal(self) -> dict[str, int | None] | None:
        """Return the periods that are not as they are by default; None if there are none."""
        days = self.model_dump()
        return {name: value for name, value in days.items() if value != type(self).model_fields[name].default} or None


class PolicyUpdate(Body):
    """Changes of the workspace's policy. A field that is left out is kept, and null clears a field."""

    model_config = examples(
        {
            "permission_policy": {
                "type": "rules",
                "rules": [{"effect": "deny", "match": "bash(git push --force *)"}],
                "default": "ask",
            },
            "approval": {"timeout_seconds": 3600, "on_timeout": "deny"},
        },
        {"permission_policy": None},
        {"model": {"fallbacks": ["claude-sonnet-5-5"]}},
        {"chat_words": {"allow": ["genehmigt"], "deny": ["abgelehnt"]}},
        {"denial_reasons": ["CI makes the releases. Open a pull request."]},
        {"retention": {"audit_days": 730}},
    )

    permission_policy: Policy | None = None
    approval: ApprovalDefaults | None = None
    model: ModelDefaults | None = None
    chat_words: Annotated[ChatWords, AfterValidator(_check_words)] | None = None
    denial_reasons: list[_Reason] | None = Field(
        None, max_length=denial_reasons.MOST, description="Reasons for a denial that people choose from. Null: the built-in ones."
    )
    retention: RetentionSettings | None = None

    def changes(self) -> dict[str, Any]:
        """Return the new values of the workspace's columns, for the fields that were sent."""
        columns = {
            "policy": self.permission_policy,
            "approval": self.approval.normal() if self.approval else None,
            "model": self.model.normal() if self.model else None,
            "chat_words": self.chat_words.normal() if self.chat_words else None,
            "denial_reasons": self.denial_reasons,
            "retention": self.retention.normal() if self.retention else None,
        }
        names = {"policy" if name == "permission_policy" else name for name in self.model_fields_set}
        return {name: value for name, value in columns.items() if name in names}


class AgentAt(Body):
    """An agent at a version, the head by default."""

    id: Id
    version: Version | None = None


def _bounded(value: dict[str, Any]) -> dict[str, Any]:
    if len(canonical(value)) > INPUT_BYTES:
        raise ValueError(f"is longer than {INPUT_BYTES} bytes; shorten the arguments that no rule tests.")
    return value


class PolicyExplain(Body):
    """A call of an agent, or of a thread of a session. With a session, grants and the agents above the thread count as well."""

    model_config = examples(
        {"agent": IDS["agent_id"], "tool": "bash", "input": {"command": "git push origin main"}},
        {"session_id": IDS["session_id"], "tool": "bash", "input": {"command": "git push origin main"}},
    )

    agent: (
        Annotated[AgentAt, BeforeValidator(lambda a: {"id": a} if isinstance(a, str) else a, json_schema_input_type=Id | AgentAt)]
        | None
    ) = None
    session_id: Id | None = None
    session_thread_id: Id | None = Field(
        None, description="The thread of the session that makes the call; the session's own by default."
    )
    tool: _Text
    input: Annotated[dict[str, Any], AfterValidator(_bounded)]
    permission_policy: Policy | None = Field(None, description="A policy in the place of the tool's own.")


class PolicySimulate(Body):
    """Either a rule or a policy, and the calls to simulate it on."""

    model_config = examples(
        {"rule": {"effect": "deny", "match": "bash(git push *)"}, "days": 7},
        {"permission_policy": {"type": "always_ask"}, "agent_id": IDS["agent_id"], "tool": "bash"},
    )

    rule: Rule | None = Field(None, description="A rule to add to the agent's policy or, without `agent_id`, to the workspace's.")
    permission_policy: Policy | None = Field(
        None,
        description="A policy in the place of the tool's; without `tool`, of the agent's; without `agent_id`, of the workspace's.",
    )
    agent_id: Id | None = Field(None, description="Only this agent's calls.")
    tool: _Text | None = Field(None, description="Only this tool's calls.")
    days: float = Field(7, gt=0, le=366)


class SuggestionList(QueryString):
    """GET /v1/policy/suggestions: rules by what people decided."""

    agent_id: str | None = Field(None, max_length=128, description="Only rules of this agent.")
