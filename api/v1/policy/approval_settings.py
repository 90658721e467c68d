"""The settings of approvals in requests: the deadline, its effect, the people who must approve, and their options."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator
from pydantic_core.core_schema import ValidationInfo

from api.door.requests import YEAR, Body, twice
from models.pure.offer import OPTIONS, GrantScope, Option, Widest
from models.pure.quorum import combined

MAX_APPROVERS = 100
MAX_REQUIRED = 20
MAX_LEVELS = 3
"""Of an escalation."""


def _no_denying(value: Any) -> Any:
    if value == "deny":
        raise ValueError("people may always deny: leave deny out.")
    return value


def _no_wide_allow(value: Any) -> Any:
    if value == "allow":
        raise ValueError("allow is taken only in a tool's own approval: name the tools whose calls may run though nobody answered.")
    return value


_Seconds = Annotated[float, Field(gt=0, le=YEAR)]
Approver = Annotated[
    str,
    StringConstraints(pattern=r"^(user:user_|group:grp_)[0-9A-Za-z]{1,100}$"),
    Field(examples=["group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"]),
]
Approvers = Annotated[list[Approver], Field(min_length=1, max_length=MAX_APPROVERS)]


class EscalationLevel(Body):
    """The people who may decide after the previous deadline has passed, and the time that they have."""

    approvers: Approvers
    timeout_seconds: _Seconds


class _ApprovalSettings(Body):
    """The times of an approval, and the people who may decide."""

    timeout_seconds: _Seconds | None = None
    remind_after_seconds: _Seconds | None = None
    approvers: Approvers | None = Field(
        None, description="Who may decide: `user:ID` and `group:ID`. Left out: every person whose role allows it, and API keys."
    )
    required_approvals: int | None = Field(None, ge=1, le=MAX_REQUIRED, description="The number of people who must approve.")
    four_eyes: bool | None = Field(
        None, description="Whether the person who started the run, or sent a message to it, may not decide."
    )
    on_timeout: Literal["deny", "end_run", "escalate", "allow"] | None = None
    escalate_to: list[EscalationLevel] | None = Field(
        None, min_length=1, max_length=MAX_LEVELS, validate_default=True, description="With `on_timeout` `escalate`: the levels."
    )
    then: Literal["deny", "end_run"] | None = Field(
        None, description="With `on_timeout` `escalate`: the effect of the last level's deadline. Left out: `deny`."
    )

    options: Annotated[list[Annotated[Option, BeforeValidator(_no_denying)]], Field(min_length=1)] | None = Field(
        None,
        description="What people may decide: allow `once`, for the `session` or `always`, `edit` the input, `answer` in the "
        "tool's place. `deny` is always offered. Left out: all.",
    )
    default_scope: GrantScope | None = Field(None, description="The scope that a form suggests for a grant. Left out: `session`.")
    widest_match: Widest | None = Field(
        None,
        description="The widest match of a grant, and the match of a grant whose decision names none: `exact` or `tool`. Left out: "
        "`tool`.",
    )

    @field_validator("options")
    @classmethod
    def _each_once(cls, value: list[Option] | None) -> list[Option] | None:
        if value and (option := twice(value)):
            raise ValueError(f"{option!r} appears twice; write each option once.")
        return value and [option for option in OPTIONS if option in value]

    @field_validator("default_scope")
    @classmethod
    def _is_offered(cls, value: GrantScope | None, info: ValidationInfo) -> GrantScope | None:
        options = info.data.get("options")
        if value and options and value not in options:
            raise ValueError(
                f"{value!r} is none of the options, {', '.join(options)}: add it to options, or leave default_scope out."
            )
        return value

    @field_validator("remind_after_seconds")
    @classmethod
    def _before_deadline(cls, value: float | None, info: ValidationInfo) -> float | None:
        limit = info.data.get("timeout_seconds")
        if value is not None and limit is not None and value >= limit:
            raise ValueError(f"must be less than timeout_seconds, {limit:g}, or nobody would be reminded.")
        return value

    @field_validator("on_timeout")
    @classmethod
    def _without_demands(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value == "allow" and combined([info.data])[0].needs_people:
            raise ValueError(
                "allow would let the call run without the people whom approvers, required_approvals or four_eyes demand: "
                "use deny, end_run or escalate."
            )
        return value

    @field_validator("escalate_to")
    @classmethod
    def _with_levels(cls, value: list[EscalationLevel] | None, info: ValidationInfo) -> list[EscalationLevel] | None:
        escalates = info.data.get("on_timeout") == "escalate"
        if escalates and not value:
            raise ValueError("on_timeout escalate needs at least one level with approvers and timeout_seconds.")
        if value and not escalates:
            raise ValueError('goes with "on_timeout": "escalate" only; set that too, or leave escalate_to out.')
        return value

    @field_validator("then")
    @classmethod
    def _with_escalation(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("on_timeout") != "escalate":
            raise ValueError('goes with "on_timeout": "escalate" only; without it, on_timeout itself says what happens.')
        return value

    def normal(self) -> dict[str, Any]:
        """Return the settings as they are stored: without empty demands on the approvers and their options."""
        fields = self.model_dump()
        return {name: value for name, value in fields.items() if value or name not in _DEMANDS}


_DEMANDS = frozenset(
    {"approvers", "required_approvals", "four_eyes", "escalate_to", "then", "options", "default_scope", "widest_match"}
)


class ApprovalConfig(_ApprovalSettings):
    """The settings of the approvals of a tool's calls, with the effect of the deadline."""

    prompt: str | None = Field(None, min_length=1, max_length=2000)


class ApprovalDefaults(_ApprovalSettings):
    """The settings of approvals where a tool's own `approval` leaves a field out. Demands on approvers add up over all levels, and
    only an option that all levels offer is offered."""

    on_timeout: Annotated[Literal["deny", "end_run", "escalate"], BeforeValidator(_no_wide_allow)] | None = None
