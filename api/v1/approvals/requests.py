"""Requests about approvals: decisions, deadlines, previews of grants, and the list."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints, field_validator
from pydantic_core.core_schema import ValidationInfo

from api.door.examples import IDS
from api.door.requests import YEAR, Body, Id, Moment, Paged, QueryString, examples, twice
from api.v1.approvals.decisions import MAX_MATCHES, DecisionFields, GrantScope, Match
from api.v1.blocks import WrittenResult
from models.errors import Invalid
from models.pure.states import APPROVAL
from models.session.approval.decision import Decision
from models.session.approval.kinds import KINDS

Status = Annotated[str, StringConstraints(pattern=f"^({'|'.join(APPROVAL)})$")]
if TYPE_CHECKING:
    ApprovalKind = str
else:
    ApprovalKind = Literal[tuple(KINDS)]
    """A kind of approval, such as `tool_call`: may the call run?"""
MAX_DECISIONS = 100
"""Most decisions in one request, the number of sessions that may be locked together."""


class ApprovalList(Paged):
    """GET /v1/approvals: oldest first, unless `order` is `desc`."""

    status: Status | None = None
    session_id: str | None = Field(None, max_length=128)
    agent_id: str | None = Field(None, max_length=128)
    tool: str | None = Field(None, max_length=200)
    kind: ApprovalKind | None = None
    expires_before: Moment | None = Field(None, alias="expires_at[lt]")
    order: Literal["asc", "desc"] = "asc"
    for_: Annotated[str, StringConstraints(pattern="^(me|user_[0-9A-Za-z]{1,100})$")] | None = Field(None, alias="for")
    """The person whose waiting list is listed: `me`, or `user_...` with an API key. It has the pending approvals that wait for the
    person's vote, the oldest deadline first, each with its `queue_position`, which is null on pages that begin behind the
    first 100."""

    @field_validator("for_")
    @classmethod
    def _in_waiting_order(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and (info.data.get("status", "pending") not in {None, "pending"} or info.data.get("order") == "desc"):
            raise ValueError("a waiting list has pending approvals, the oldest deadline first: leave out status and order.")
        return value


class ApprovalShow(QueryString):
    """GET /v1/approvals/{id}."""

    reveal: bool = False
    """Whether to show the secrets in the input. Needs the scope `reveal`, and is audited."""


class DecisionBody(DecisionFields):
    """A decision: `result` is `allow` or `deny`.

    For a call whose outcome is unknown, send `outcome` instead. With the outcome `happened`, `result` is the tool's result: text or
    content blocks.
    """

    model_config = examples(
        {"result": "allow"},
        {"result": "deny", "deny_message": "Not on a Friday."},
        {"result": "allow", "updated_input": {"command": "git push origin staging"}},
        {"result": "allow", "scope": "session", "match": "bash(git push *)"},
        {"result": "allow", "scope": "session", "matches": ["bash(git push *)", "bash(gh release create *)"]},
        {"result": "allow", "respond": "The branch is pushed already."},
        {"result": "allow", "answer": {"email": "ada@example.com"}},
        {"outcome": "rerun"},
    )

    result: Literal["allow", "deny"] | WrittenResult | None = None
    outcome: Literal["rerun", "happened", "give_up"] | None = None

    def decision(self) -> Decision:
        """Return the decision for the verb. Raises Invalid if `result` does not fit `outcome`."""
        if self.outcome is None:
            if isinstance(self.result, str):
                return self.decided(self.result)
            raise Invalid("result", 'must be "allow" or "deny"; send outcome for a call whose outcome is unknown.')
        if (self.outcome == "happened") != (self.result is not None):
            raise Invalid("result", 'goes with outcome "happened": the text or the content blocks of the tool\'s result.')
        return self.decided(None, outcome=self.outcome, content=self._content())

    def _content(self) -> tuple[dict[str, object], ...]:
        result = self.result or ()
        if isinstance(result, str):
            return ({"type": "text", "text": result},)
        return tuple(block.model_dump(exclude_none=True) for block in result)


class BulkDecision(DecisionBody):
    """The decision of one of several approvals."""

    model_config = examples(
        {"approval_id": IDS["approval_id"], "result": "allow"},
    )

    approval_id: Id


class DecisionsBody(Body):
    """Several decisions, of which all are made, or none."""

    decisions: Annotated[list[BulkDecision], Field(min_length=1, max_length=MAX_DECISIONS)]

    @field_validator("decisions")
    @classmethod
    def _each_once(cls, decisions: list[BulkDecision]) -> list[BulkDecision]:
        if approval_id := twice(item.approval_id for item in decisions):
            raise ValueError(f"{approval_id[:64]!r} appears twice; decide each approval once.")
        return decisions


class ExtendBody(Body):
    """A new deadline, in seconds from now."""

    model_config = examples(
        {"seconds": 86400},
    )

    seconds: float = Field(ge=1, le=YEAR)


class PreviewBody(Body):
    """The fields of a decision that describe its grant."""

    model_config = examples(
        {"scope": "session", "match": "bash(git push *)"},
        {"scope": "session", "matches": ["bash(git push *)", "bash(gh release create *)"]},
    )

    scope: GrantScope
    match: Match | None = None
    matches: Annotated[list[Match], Field(min_length=1, max_length=MAX_MATCHES)] | None = None
    include_sub_agents: bool | None = None
