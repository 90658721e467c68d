"""Requests about events: events to send, and the queries of lists and streams."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from api.door.examples import IDS
from api.door.requests import AtMost, Body, Created, Id, PersonName, QueryString, examples
from api.v1.approvals.decisions import DecisionFields
from api.v1.blocks import MessageBlock, Result, not_blank
from models.errors import Invalid
from models.session.approval.decision import Decision
from models.session.event.row import OF_ASSENT


class UserMessage(Body):
    """A message of the user."""

    type: Literal["user.message"]
    content: Annotated[list[MessageBlock], Field(min_length=1, max_length=100), AfterValidator(not_blank)]
    seen: Id | None = None
    """The last event that the user saw. Chat words in the message do not decide approvals that are newer than this event."""
    on_behalf_of: PersonName | None = None
    """The person for whom the API key speaks. With `four_eyes` this person may not decide the approvals of the run."""


class UserInterrupt(Body):
    """A request to end the run."""

    type: Literal["user.interrupt"]
    session_thread_id: Id | None = None


class UserToolConfirmation(DecisionFields):
    """A person's decision on a call that waits for an approval."""

    type: Literal["user.tool_confirmation"]
    tool_use_id: Id
    result: Literal["allow", "deny"]

    def decision(self) -> Decision:
        """Return the decision for the verb."""
        return self.decided(self.result)


class UserCustomToolResult(Body):
    """The result of a client tool."""

    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: Id
    content: Annotated[list[Result], Field(max_length=100)] | None = None
    is_error: bool | None = None


class UserToolResult(Body):
    """The result of a built-in tool that the client's own worker ran, in a self-hosted environment."""

    type: Literal["user.tool_result"]
    tool_use_id: Id
    content: Annotated[list[Result], Field(max_length=100)] | None = None
    is_error: bool | None = None


Event = Annotated[
    UserMessage | UserInterrupt | UserToolConfirmation | UserCustomToolResult | UserToolResult, Field(discriminator="type")
]
_SCOPES = {
    "user.tool_confirmation": "approvals",
    "user.custom_tool_result": "sessions or environment",
    "user.tool_result": "sessions or environment",
}


def plain(event: Body) -> dict[str, Any]:
    """Return an event as the verbs take it: without absent fields. A confirmation carries its `Decision` as `decision`."""
    if isinstance(event, UserToolConfirmation):
        return {"type": event.type, "tool_use_id": event.tool_use_id, "decision": event.decision()}
    return event.model_dump(exclude_none=True)


class EventsSend(Body):
    """Events to send to a session."""

    model_config = examples(
        {"events": [{"type": "user.message", "content": [{"type": "text", "text": "Please refund order 1042."}]}]},
        {"events": [{"type": "user.tool_confirmation", "tool_use_id": IDS["event_id"], "result": "allow"}]},
        {
            "events": [
                {
                    "type": "user.custom_tool_result",
                    "custom_tool_use_id": IDS["event_id"],
                    "content": [{"type": "text", "text": "Done."}],
                }
            ]
        },
        {"events": [{"type": "user.interrupt"}]},
    )

    events: Annotated[list[Event], Field(min_length=1), AtMost("max_events_per_post")]

    def scopes(self) -> Iterator[str]:
        """Yield the scope that each event needs."""
        for event in self.events:
            yield _SCOPES.get(event.type, "sessions")

    def check(self) -> None:
        """Raise Invalid if a decision's fields do not go together. Reads no row."""
        for index, event in enumerate(self.events):
            if isinstance(event, UserToolConfirmation):
                try:
                    event.decision().check()
                except Invalid as refusal:
                    raise refusal.renamed(f"events.{index}.{refusal.field}") from None


# All types that the SDK knows, including those that this server never emits.
TYPES = frozenset(
    {
        "user.message",
        "user.interrupt",
        "user.tool_confirmation",
        "user.custom_tool_result",
        "user.tool_result",
        "user.define_outcome",
        "system.message",
        "agent.message",
        "agent.thinking",
        "agent.tool_use",
        "agent.tool_result",
        "agent.custom_tool_use",
        "agent.mcp_tool_use",
        "agent.mcp_tool_result",
        "agent.thread_message_received",
        "agent.thread_message_sent",
        "agent.thread_context_compacted",
        "session.error",
        "session.status_rescheduled",
        "session.status_running",
        "session.status_idle",
        "session.status_terminated",
        "session.updated",
        "session.deleted",
        "session.usage",
        "session.thread_created",
        "session.thread_status_running",
        "session.thread_status_idle",
        "session.thread_status_terminated",
        "session.thread_status_rescheduled",
        "span.model_request_start",
        "span.model_request_end",
        "span.outcome_evaluation_start",
        "span.outcome_evaluation_end",
        "span.outcome_evaluation_ongoing",
        "workflow_run.created",
        "workflow_run.status_running",
        "workflow_run.status_idle",
        "workflow_run.status_ended",
        "workflow_run.error",
        "workflow_run.phase_started",
        "workflow_run.phase_ended",
    }
)
TypeName = Annotated[str, Field(json_schema_extra={"anyOf": [{"enum": sorted(TYPES)}, {"pattern": "^(approval|grant|model)[.]"}]})]


class Seen(QueryString):
    """The field that lists and streams of events share."""

    include: list[Literal["approvals"]] = Field(default_factory=list)


class EventList(Seen, Created):
    """GET /v1/sessions/{id}/events. Times compare with `processed_at`, as the SDK says."""

    limit: Annotated[int, Field(ge=1), AtMost("max_page_events")] = 100
    order: Literal["asc", "desc"] = "asc"
    types: list[TypeName] = Field(default_factory=list, max_length=100)
    reveal: bool = False
    """Whether to show the secrets in the inputs and results of calls. Needs the scope `reveal`, and is audited."""

    @field_validator("types")
    @classmethod
    def _known(cls, types: list[str]) -> list[str]:
        for name in types:
            if name not in TYPES and not name.startswith(OF_ASSENT):
                raise ValueError(f"{name[:64]!r} is not a type of event; use a type such as agent.message.")
        return types


class EventStream(Seen):
    """GET /v1/sessions/{id}/events/stream."""

    event_deltas: list[Literal["agent.message", "agent.thinking"]] = Field(default_factory=list)
