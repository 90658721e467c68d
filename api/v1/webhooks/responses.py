"""Responses about webhook endpoints, in the SDK's form, and about their deliveries."""

from typing import Literal, Self

from pydantic import Field, SerializeAsAny

from api.door.examples import IDS
from api.door.responses import DeliveryId, ResponseModel, Time, WebhookId
from models.outbox import delivery


class Webhook(ResponseModel):
    """An endpoint, without its secret."""

    id: WebhookId
    type: Literal["webhook_endpoint"]
    url: str = Field(examples=["https://example.com/assent"])
    name: str = Field(examples=["Ops"])
    description: str = Field(examples=["What ops read."])
    enabled_events: list[str] = Field(examples=[["session.requires_action", "approval.requested"]])
    state: Literal["enabled", "disabled"]
    disabled_reason: str = Field(examples=[""])
    """Why Assent disabled the endpoint; empty if it is enabled, or if somebody disabled it."""
    created_at: Time
    updated_at: Time


class SigningSecret(ResponseModel):
    """A new signing secret."""

    signing_secret: str | None = Field(examples=["whsec_..."])
    """Shown once: null in the response to a repeated request. For 24 hours, deliveries also have a signature by the previous
    secret."""


class NewWebhook(Webhook):
    """A new endpoint with its signing secret."""

    signing_secret: str | None = Field(examples=["whsec_..."])
    """Shown once: null in the response to a repeated request. Then regenerate the secret."""


class WebhookDeleted(ResponseModel):
    """The endpoint is deleted."""

    id: WebhookId
    type: Literal["webhook_endpoint_deleted"]


class Attempt(ResponseModel):
    """One attempt at a delivery. The response's body is not kept."""

    at: Time
    status: int | None = Field(examples=[503])
    """The status of the response. Null without a response."""
    error: str | None = Field(examples=["The response was 503."])
    seconds: float = Field(examples=[0.041])


class Delivery(ResponseModel):
    """One event for one endpoint."""

    id: DeliveryId
    type: Literal["webhook_delivery"]
    webhook_id: WebhookId
    event_id: str = Field(examples=["whev_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    """The header `webhook-id`: the same for each attempt."""
    event_type: str = Field(examples=["session.requires_action"])
    subject_id: str = Field(examples=[IDS["session_id"]])
    """The id of the session, thread, agent, environment or approval."""
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    attempts: SerializeAsAny[list[Attempt]]
    due_at: Time | None
    """The time of the next attempt at a queued delivery."""
    created_at: Time
    ended_at: Time | None

    @classmethod
    def of(cls, row: delivery.Delivery) -> Self:
        """Return a delivery with its attempts."""
        due_at = row.due_at if row.status == "queued" else None
        return cls.from_row(row, webhook_id=row.endpoint_id, due_at=due_at)


class Redelivered(ResponseModel):
    """The number of deliveries that are sent again."""

    type: Literal["webhook_redelivery"]
    queued: int = Field(examples=[12])
    has_more: bool = Field(examples=[False])
    """True if more deliveries match: send the request again."""
