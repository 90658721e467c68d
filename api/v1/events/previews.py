"""Previews of events: text that the model is writing now. The complete event follows."""

from typing import Literal

from api.door.responses import EventId, ResponseModel, Text


class Previewed(ResponseModel):
    """The event to which the deltas belong."""

    id: EventId
    type: Literal["agent.message", "agent.thinking"]


class EventStart(ResponseModel):
    """A preview begins. The complete event with this id follows later."""

    type: Literal["event_start"]
    event: Previewed


class ContentDelta(ResponseModel):
    """The next text of one block."""

    type: Literal["content_delta"]
    index: int
    content: Text


class EventDelta(ResponseModel):
    """A part of the event with this id. Deltas are not stored."""

    type: Literal["event_delta"]
    event_id: EventId
    delta: ContentDelta
