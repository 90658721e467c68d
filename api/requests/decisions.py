"""What goes with a decision, by whichever door it comes. Which parts go together, `models.decision` says."""

from typing import Annotated, Any, Literal

from pydantic import Field

from api.requests.base import YEAR, Body, Message, Sha256
from api.requests.blocks import Answered
from models.decision import Decision
from models.pure.policy.rules import MAX_TEXT

MAX_USES = 1_000_000

GrantScope = Literal["session", "always"]
Match = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class DecisionFields(Body):
    """All of a decision but allow or deny."""

    deny_message: Message | None = None
    """With deny: for the model."""
    interrupt: bool | None = None
    """With deny: the run ends."""
    updated_input: dict[str, Any] | None = None
    """With allow: the whole input that is to run instead. What was shown masked may be left as it was shown."""
    respond: Answered | None = None
    """With allow: the answer in the tool's place; it does not run."""
    scope: Literal["once", "session", "always"] | None = None
    """With allow: beyond `once` it gives a grant."""
    match: Match | None = None
    """What the grant covers: `tool` (the default), `exact`, or a rule's text such as `bash(git status *)`."""
    expires_in_seconds: float | None = Field(None, gt=0, le=YEAR)
    """Of the grant; an `always` grant has 30 days unless it says otherwise."""
    max_uses: int | None = Field(None, ge=1, le=MAX_USES)
    """Of the grant."""
    expected_input_sha256: Sha256 | None = None
    """The hash of the input that was shown: 409 if another would run."""

    def decided(self, result: Literal["allow", "deny"] | None, **more: Any) -> Decision:
        """What the verb takes."""
        return Decision(
            result=result,
            deny_message=self.deny_message,
            interrupt=bool(self.interrupt),
            updated_input=self.updated_input,
            respond=tuple(block.model_dump(exclude_none=True) for block in self.respond or ()),
            scope=self.scope or "once",
            match=self.match,
            expires_in_seconds=self.expires_in_seconds,
            max_uses=self.max_uses,
            expected_input_sha256=self.expected_input_sha256,
            **more,
        )
