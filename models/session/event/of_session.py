"""The events of a session itself: what people said and changed, what the agent said, and whether the session runs."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from models.pure.states import RunLimit
from models.session.event.fields import ApprovalId, EventId, Sha256, Text

Json = dict[str, Any]
"""JSON of another noun, whose class the API has, because it validated the JSON or shows it by itself."""


class StoredMessage(TypedDict):
    """A message of the user. `processed_at` is null while the message is queued."""

    type: Literal["user.message"]
    content: list[Json]
    on_behalf_of: NotRequired[str]
    """The person who wrote the message, or for whom the API key speaks."""


class StoredInterrupt(TypedDict):
    """A request to end the run: of one thread if it names one, else of all."""

    type: Literal["user.interrupt"]
    session_thread_id: NotRequired[str]


class OfApprovals(TypedDict):
    """Marks a message about approvals, which the model did not write and never gets."""

    kind: Literal["waiting", "decided"]
    """`waiting`: the message lists what waits, or says why nothing was decided. `decided`: it names the grants of a word."""
    approval_ids: list[ApprovalId]
    shown_inputs: NotRequired[dict[str, Sha256]]
    """The hashes of the inputs that the message shows whole, by approval: a chat word may allow these calls."""


class AgentMessage(TypedDict):
    """A message of the agent; with `assent`, a message about approvals."""

    type: Literal["agent.message"]
    content: list[Text]
    assent: NotRequired[OfApprovals]


class StatusRunning(TypedDict):
    """The session is running."""

    type: Literal["session.status_running"]


class StatusRescheduled(TypedDict):
    """The turn will be retried later."""

    type: Literal["session.status_rescheduled"]


class Ended(TypedDict):
    """The run is over."""

    type: Literal["end_turn", "retries_exhausted", "budget_reached", "refusal"]
    ended_by: NotRequired[str]
    """The principal that ended the run. Absent if the run ended by itself."""
    message: NotRequired[str]
    """The principal's reason."""
    limit_reached: NotRequired[RunLimit]
    """The limit that ended the run before the agent had finished. `type` is then `end_turn`; a message lets the agent go on."""


class RequiresAction(TypedDict):
    """A person must decide, or the client must run its tools."""

    type: Literal["requires_action"]
    event_ids: list[EventId]


StopReason = Annotated[Ended | RequiresAction, Field(discriminator="type")]


class StatusIdle(TypedDict):
    """The session is idle, for the reason in `stop_reason`."""

    type: Literal["session.status_idle"]
    stop_reason: StopReason
    stop_details: NotRequired[Json]


class StatusTerminated(TypedDict):
    """The session is archived. No more events follow."""

    type: Literal["session.status_terminated"]


class SessionChanges(TypedDict, total=False):
    """New values of fields of the session."""

    title: str | None
    metadata: dict[str, str]
    budget: Json | None
    agent: Json


class SessionUpdated(SessionChanges):
    """The changed fields of the session."""

    type: Literal["session.updated"]


class SessionUsage(TypedDict):
    """What the session consumed so far."""

    type: Literal["session.usage"]
    usage: Json
    budget: Json | None


class DeletedEvent(TypedDict):
    """The session is deleted. Only streams send this event."""

    type: Literal["session.deleted"]
