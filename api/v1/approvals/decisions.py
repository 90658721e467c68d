"""The fields of a decision, for every route that takes one. `models.session.approval.decision` checks which fields go together."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator
from pydantic_core.core_schema import ValidationInfo

from api.door.requests import YEAR, Body, Message, Sha256
from api.v1.blocks import WrittenResult
from models.pure.json.canonical import canonical
from models.pure.policy.rules import MAX_TEXT
from models.session.approval.decision import Decision

MAX_USES = 1_000_000
MAX_MATCHES = 10
"""Most grants of one decision."""
ANSWER_BYTES = 100_000
"""Most bytes of all answers of a decision together."""

GrantScope = Literal["session", "always"]
Match = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class Answer(Body):
    """A person's answer to one question of a tool: the completed form, or a refusal."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None
    """With `accept`: the values of the form's fields."""

    @field_validator("content")
    @classmethod
    def _only_with_accept(cls, content: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if content is not None and info.data.get("action", "accept") != "accept":
            raise ValueError("goes with action accept only; leave it out.")
        return content


def _bounded(replies: dict[str, Any]) -> dict[str, Any]:
    content = {key: reply.model_dump() if isinstance(reply, Answer) else reply for key, reply in replies.items()}
    if len(canonical(content)) > ANSWER_BYTES:
        raise ValueError(f"is longer than {ANSWER_BYTES} bytes; shorten the answers.")
    return replies


Key = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Answers = Annotated[dict[Key, Answer], Field(min_length=1, max_length=64), AfterValidator(_bounded)]
ONLY = ""
"""The key of a single question, for a decision that does not name it."""


_PASSED_OTHERWISE = frozenset({"answer", "answers", "result", "outcome", "type", "tool_use_id", "approval_id"})
"""Fields that `replies` returns, that a route passes to `decided`, or that say which approval is decided."""


class DecisionFields(Body):
    """The fields of a decision except its `result`."""

    deny_message: Message | None = None
    """With deny: the message to the model."""
    interrupt: bool | None = None
    """With deny: whether the run ends as well."""
    updated_input: dict[str, Any] | None = None
    """With allow: the whole input that runs in the place of the model's. If it holds a mask, nothing else
    may differ from what was shown, unless the request has the scope `reveal`: type each secret."""
    respond: WrittenResult | None = None
    """With allow: a result in the place of the tool's. The tool does not run."""
    scope: Literal["once", "session", "always"] | None = None
    """With allow: `session` and `always` also create a grant, which allows later calls."""
    match: Match | None = None
    """The calls that the grant covers: `tool` (the default), `exact`, or the text of a rule such as `bash(git status *)`."""
    matches: Annotated[list[Match], Field(min_length=1, max_length=MAX_MATCHES)] | None = None
    """Instead of `match`: the texts of several rules, such as one for each command of a line. Each becomes a grant. A grant for
    commands covers no line with a command that takes something away, such as `rm` or `git push --force`."""
    expires_in_seconds: float | None = Field(None, gt=0, le=YEAR)
    """The lifetime of each grant. An `always` grant lasts 30 days by default."""
    max_uses: int | None = Field(None, ge=1, le=MAX_USES)
    """The number of calls that each grant may allow."""
    include_sub_agents: bool | None = None
    """With `scope: session`: whether the grant covers the calls of all agents of the session, not of the one that asks alone."""
    expected_input_sha256: Sha256 | None = None
    """The hash of the input that the person saw. The response is a 409 if a different input would run."""
    answers: Answers | None = None
    """With allow, if the tool asked questions: the reply to each question, by its key."""
    answer: Annotated[dict[str, Any], AfterValidator(_bounded)] | None = None
    """Short form for a single question: accepts it with this content."""

    @field_validator("answer")
    @classmethod
    def _without_answers(cls, answer: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if answer is not None and info.data.get("answers") is not None:
            raise ValueError("is the short form of answers, for a single question: send one of them.")
        return answer

    @property
    def replies(self) -> dict[str, Any] | None:
        """The answer to each question, from `answers` or `answer`."""
        if self.answer is not None:
            return {ONLY: {"action": "accept", "content": self.answer}}
        if self.answers is None:
            return None
        return {key: reply.model_dump(exclude_none=True) for key, reply in self.answers.items()}

    def decided(self, result: Literal["allow", "deny"] | None, **more: Any) -> Decision:
        """Return the decision for the verb. `more` are fields of `Decision` that only some routes take.

        Every field goes into the decision, also those that a route's class adds. A field that `Decision` lacks raises TypeError.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields if name not in _PASSED_OTHERWISE}
        if self.respond is not None:
            fields["respond"] = tuple(block.model_dump(exclude_none=True) for block in self.respond)
        if self.matches is not None:
            fields["matches"] = tuple(self.matches)
        present = {name: value for name, value in fields.items() if value is not None}
        return Decision(result=result, answers=self.replies, **present, **more)
