"""Decisions as people's clients send them, and the inbox's query."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from api.requests.base import Body, Message, Paged, Sha256
from api.requests.events import Result, Text, check_deny_only, plain
from models.approval import Decision
from models.pure.states import APPROVAL

Status = Annotated[str, StringConstraints(pattern=f"^({'|'.join(APPROVAL)})$")]


class ApprovalList(Paged):
    """GET /v1/approvals: the oldest first, unless `order` says otherwise."""

    status: Status | None = None
    session_id: str | None = Field(None, max_length=128)
    order: Literal["asc", "desc"] = "asc"


class DecisionBody(Body):
    """POST /v1/approvals/{id}/decision.

    `result` is allow or deny. For a call whose outcome is unknown, `outcome` instead, and with `happened` the tool's result as
    `result`: text or content blocks.
    """

    result: Text | Annotated[list[Result], Field(min_length=1, max_length=100)] | None = None
    outcome: Literal["rerun", "happened", "give_up"] | None = None
    deny_message: Message | None = None
    interrupt: bool | None = None
    expected_input_sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _fits(self) -> "DecisionBody":
        if self.outcome is None:
            if self.result not in ("allow", "deny"):
                raise ValueError('result must be "allow" or "deny"; or send outcome, for a call whose outcome is unknown.')
            check_deny_only(self.result == "deny", self.deny_message, self.interrupt)
        elif (self.outcome == "happened") != (self.result is not None):
            raise ValueError('result goes with outcome "happened": the text or the content blocks that the tool gave.')
        elif self.interrupt or (self.deny_message and self.outcome != "give_up"):
            raise ValueError('with outcome only "give_up" takes a deny_message, and interrupt is not taken.')
        return self

    def decision(self) -> Decision:
        """What the verb takes."""
        content: list[dict[str, object]] = []
        if self.outcome == "happened":
            said = self.result or ""
            content = [{"type": "text", "text": said}] if isinstance(said, str) else [plain(block) for block in said]
        return Decision(
            result=self.result if self.outcome is None else None,  # type: ignore[arg-type]  # allow or deny, by _fits
            deny_message=self.deny_message,
            interrupt=bool(self.interrupt),
            outcome=self.outcome,
            content=tuple(content),
            expected_input_sha256=self.expected_input_sha256,
        )
