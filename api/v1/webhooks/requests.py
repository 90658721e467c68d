"""Requests about webhook endpoints: the fields of the SDK's `beta.organization.webhooks`, with a workspace's events."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from api.door.examples import TIME
from api.door.requests import Body, Created, Description, Moment, examples, not_null
from api.door.urls import outside_url
from models.outbox.webhook_events import EVENTS, SDK_EVENTS

Url = Annotated[str, StringConstraints(max_length=2000), AfterValidator(outside_url)]
Label = Annotated[str, StringConstraints(max_length=256)]


def _event_type(event: str) -> str:
    if event not in EVENTS:
        raise ValueError(f"unknown event {event[:80]!r}: use {', '.join(EVENTS)}.")
    return event


EventType = Annotated[str, AfterValidator(_event_type), Field(json_schema_extra={"enum": list(EVENTS)})]
EventTypes = Annotated[list[EventType], Field(min_length=1, max_length=len(EVENTS))]


class WebhookCreate(Body):
    """A new endpoint."""

    model_config = examples(
        {"url": "https://example.com/assent", "enabled_events": ["session.requires_action", "approval.requested"]},
    )

    url: Url
    """Deliveries are POST requests to this URL, over HTTPS."""
    enabled_events: EventTypes = Field(list(SDK_EVENTS))
    """The events to deliver. Default: all events that the SDK knows. Assent's own events `approval.*` must be named."""
    name: Label = ""
    description: Description = ""


class WebhookUpdate(Body):
    """Changes of an endpoint. A field that is left out is kept."""

    model_config = examples({"state": "disabled"}, {"enabled_events": ["session.requires_action"]})

    url: Url | None = None
    enabled_events: Annotated[list[EventType], Field(max_length=len(EVENTS))] | None = None
    """Replaces the whole list; an empty list leaves it unchanged."""
    name: Label | None = None
    description: Description | None = None
    state: Literal["enabled", "disabled"] | None = None
    """`enabled` resumes deliveries and clears `disabled_reason`. Events that occur while an endpoint is disabled are never
    delivered."""

    _no_null = field_validator("url", "enabled_events", "name", "description", "state", mode="before")(not_null)

    def changes(self) -> dict[str, Any]:
        """Return the fields that the request sets."""
        changes = self.model_dump(exclude_unset=True)
        if not changes.get("enabled_events", True):
            del changes["enabled_events"]
        return changes


class WebhookTest(Body):
    """The event of a test delivery."""

    model_config = examples({"event_type": "session.requires_action"})

    event_type: EventType | None = None
    """Default: the first of the endpoint's events."""


class Redelivery(Body):
    """The deliveries to send again, by their status and time of creation."""

    model_config = examples({"status": "failed", "created_after": TIME})

    status: Literal["done", "failed", "cancelled"] = "failed"
    created_after: Annotated[Moment, Field(strict=False)] | None = None
    created_before: Annotated[Moment, Field(strict=False)] | None = None


class DeliveryList(Created):
    """GET /v1/webhooks/{id}/deliveries."""

    status: Literal["queued", "running", "done", "failed", "cancelled"] | None = None
    event_type: EventType | None = None
