"""Routes of webhook endpoints and their deliveries."""

from flask import Blueprint

from api import wire
from api.answers import webhooks as answers
from api.answers.base import Page
from api.door import Json, reads, writes
from api.paging import OPERATORS, Order, Wanted, page
from api.requests.base import NoQuery, Nothing
from api.requests.webhooks import DeliveryList, Redelivery, WebhookCreate, WebhookList, WebhookTest, WebhookUpdate
from models.audit.principal import Principal
from models.database.rows import Db
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint

webhooks = Blueprint("webhooks", __name__, url_prefix="/v1/webhooks")

SCOPE = "admin"
AT_ONCE = 500
"""Deliveries that one request sends again."""
NEWEST: Order[Endpoint] = Order("webhooks", (Endpoint.id,), lambda endpoint: (endpoint.id,))
NEWEST_DELIVERY: Order[Delivery] = Order("deliveries", (Delivery.id,), lambda delivery: (delivery.id,))


@webhooks.post("")
@writes(WebhookCreate, SCOPE, answer=answers.NewWebhook, shown_once="signing_secret")
def create(db: Db, principal: Principal, body: WebhookCreate) -> Json:
    """Create an endpoint, whose signing secret is in this response only."""
    row = Endpoint.create(
        db, principal, url=body.url, enabled_events=body.enabled_events, name=body.name, description=body.description
    )
    return _endpoint(row) | {"signing_secret": row.secret}


@webhooks.get("")
@reads(WebhookList, SCOPE, answer=Page[answers.Webhook])
def index(db: Db, _principal: Principal, query: WebhookList) -> Json:
    """List the workspace's endpoints, newest first."""
    rows, after = page(db, Wanted(Endpoint), NEWEST, query.limit, query.page)
    return {"data": [_endpoint(row) for row in rows], "next_page": after}


@webhooks.get("/<webhook_id>")
@reads(NoQuery, SCOPE, answer=answers.Webhook)
def show(db: Db, _principal: Principal, _query: NoQuery, webhook_id: str) -> Json:
    """Get an endpoint without its signing secret."""
    return _endpoint(Endpoint.find(db, webhook_id))


@webhooks.post("/<webhook_id>")
@writes(WebhookUpdate, SCOPE, once=True, answer=answers.Webhook)
def update(db: Db, principal: Principal, body: WebhookUpdate, webhook_id: str) -> Json:
    """Update an endpoint, or disable and enable it."""
    row = Endpoint.find(db, webhook_id, lock=True)
    row.change(db, principal, body.changes())
    return _endpoint(row)


@webhooks.delete("/<webhook_id>")
@writes(Nothing, SCOPE, once=True, answer=answers.WebhookDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, webhook_id: str) -> Json:
    """Delete an endpoint with its deliveries."""
    Endpoint.find(db, webhook_id).delete(db, principal)
    return {"id": webhook_id, "type": "webhook_endpoint_deleted"}


@webhooks.post("/<webhook_id>/regenerate_signing_secret")
@writes(Nothing, SCOPE, answer=answers.SigningSecret, shown_once="signing_secret")
def regenerate(db: Db, principal: Principal, _body: Nothing, webhook_id: str) -> Json:
    """Replace an endpoint's signing secret.

    For 24 hours deliveries carry a signature by the previous secret as well.
    """
    row = Endpoint.find(db, webhook_id, lock=True)
    row.regenerate_secret(db, principal)
    return {"signing_secret": row.secret}


@webhooks.post("/<webhook_id>/test")
@writes(WebhookTest, SCOPE, answer=answers.Delivery)
def test(db: Db, _principal: Principal, body: WebhookTest, webhook_id: str) -> Json:
    """Send an endpoint a test event, which names a session that does not exist."""
    endpoint = Endpoint.find(db, webhook_id)
    return _delivery(Delivery.test(db, endpoint, body.event_type or endpoint.enabled_events[0]))


@webhooks.get("/<webhook_id>/deliveries")
@reads(DeliveryList, SCOPE, answer=Page[answers.Delivery])
def deliveries(db: Db, _principal: Principal, query: DeliveryList, webhook_id: str) -> Json:
    """List an endpoint's deliveries with their attempts, newest first."""
    endpoint = Endpoint.find(db, webhook_id)
    selection = Wanted(Delivery).equal(endpoint_id=endpoint.id, status=query.status, event_type=query.event_type)
    for op, at in query.between:
        selection = selection.where(f"created_at {OPERATORS[op]} %(created_{op})s", **{f"created_{op}": at})
    rows, after = page(db, selection, NEWEST_DELIVERY, query.limit, query.page)
    return {"data": [_delivery(row) for row in rows], "next_page": after}


@webhooks.post("/<webhook_id>/deliveries/<delivery_id>/redeliver")
@writes(Nothing, SCOPE, once=True, answer=answers.Delivery)
def redeliver(db: Db, _principal: Principal, _body: Nothing, webhook_id: str, delivery_id: str) -> Json:
    """Send one delivery again.

    The `webhook-id` stays the same.
    """
    delivery = Delivery.of(db, webhook_id, delivery_id, lock=True)
    delivery.send_again(db)
    return _delivery(delivery)


@webhooks.post("/<webhook_id>/redeliver")
@writes(Redelivery, SCOPE, once=True, answer=answers.Redelivered)
def redeliver_range(db: Db, _principal: Principal, body: Redelivery, webhook_id: str) -> Json:
    """Send deliveries of one status and time again, up to 500 of them, the oldest first."""
    selection = Wanted(Delivery).equal(endpoint_id=Endpoint.find(db, webhook_id).id, status=body.status)
    if body.created_after:
        selection = selection.where("created_at >= %(after)s", after=body.created_after)
    if body.created_before:
        selection = selection.where("created_at < %(before)s", before=body.created_before)
    rows = selection.select(db, "ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE", limit=AT_ONCE + 1)
    for row in rows[:AT_ONCE]:
        row.send_again(db)
    return {"type": "webhook_redelivery", "queued": len(rows[:AT_ONCE]), "has_more": len(rows) > AT_ONCE}


def _endpoint(row: Endpoint) -> Json:
    return {
        "id": row.id,
        "type": "webhook_endpoint",
        "url": row.url,
        "name": row.name,
        "description": row.description,
        "enabled_events": row.enabled_events,
        "state": row.state,
        "disabled_reason": row.disabled_reason,
        "created_at": wire.time(row.created_at),
        "updated_at": wire.time(row.updated_at),
    }


def _delivery(row: Delivery) -> Json:
    return {
        "id": row.id,
        "type": "webhook_delivery",
        "webhook_id": row.endpoint_id,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "subject_id": row.subject_id,
        "status": row.status,
        "attempts": row.attempts,
        "due_at": wire.time(row.due_at) if row.status == "queued" else None,
        "created_at": wire.time(row.created_at),
        "ended_at": wire.time(row.ended_at) if row.ended_at else None,
    }
