"""Types of the fields of events: their JSON, and the schema that the API's document gives for it.

An event is a typed dict: the dict that `Locked.emit` stores. mypy checks it where it is emitted, and nothing checks it again.
"""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import WithJsonSchema
from typing_extensions import ReadOnly, TypedDict

from models.database import ids

EventId = Annotated[str, Field(examples=[ids.example("sevt")])]
ApprovalId = Annotated[str, Field(examples=[ids.example("appr")])]
GrantId = Annotated[str, Field(examples=[ids.example("grnt")])]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["5f" * 32])]
Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""As `models.pure.times.rfc3339` returns it."""


def one_of(*values: str) -> WithJsonSchema:
    """Return the schema of a text that is one of these values: mostly a status of a row."""
    return WithJsonSchema({"type": "string", "enum": list(values)})


class EventBody(TypedDict):
    """What the class of an event has at least: its one type, or its few types. `Locked.emit` takes no plain dict."""

    type: ReadOnly[str]


class ShownFields(TypedDict):
    """The fields that an event has beside its body: `Locked.emit` chooses them, and `Event.shown` adds them."""

    id: EventId
    processed_at: Time | None


class Text(TypedDict):
    """Plain text."""

    type: Literal["text"]
    text: Annotated[str, Field(examples=["The refund is done."])]
