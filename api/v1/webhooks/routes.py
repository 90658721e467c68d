"""Routes of webhook endpoints and their deliveries: the SDK's `beta.organization.webhooks`, and the same under `/v1/webhooks`."""

from flask import Blueprint

from api.door.paging import Order, Selection, listed
from api.door.requests import NoQuery, Nothing, Paged
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.webhooks import responses
from api.v1.webhooks.requests import DeliveryList, Redelivery, WebhookCreate, WebhookTest, WebhookUpdate
from models.audit.principal import Principal
from models.database.rows import Db
from models.outbox import endpoint
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint

webhooks = Blueprint("webhooks", __name__)

PREFIXES = {"webhooks": "/v1/webhooks", "organization_webhooks": "/v1/organizations/webhooks"}
"""The prefix of the routes by the name of the blueprint. The SDK uses the second prefix."""
SCOPE = "admin"
AT_ONCE = 500
"""Most deliveries that one request sends again."""
NEWEST: Order[Endpoint] = Order("webhooks", (Endpoint.id,))
NEWEST_DELIVERY: Order[Delivery] = Order("deliveries", (Delivery.id,))


@webhooks.post("")
@writes(WebhookCreate, SCOPE, response=responses.NewWebhook, shown_once="signing_secret")
def create(db: Db, principal: Principal, body: WebhookCreate) -> responses.NewWebhook:
    """Create an endpoint, whose signing secret is in this response only."""
    new = NewEndpoint(url=body.url, enabled_events=body.enabled_events, name=body.name, description=body.description)
    row, secret = Endpoint.create(db, principal, new)
    return responses.NewWebhook.from_row(row, signing_secret=secret)


@webhooks.get("")
@reads(Paged, SCOPE, response=Page[responses.Webhook])
def index(db: Db, _principal: Principal, query: Paged) -> Page[responses.Webhook]:
    """List the workspace's endpoints, newest first."""
    return listed(db, Selection(Endpoint), NEWEST, query, responses.Webhook.from_row)


@webhooks.get("/<webhook_id>")
@reads(NoQuery, SCOPE, response=responses.Webhook)
def show(db: Db, _principal: Principal, _query: NoQuery, webhook_id: str) -> responses.Webhook:
    """Get an endpoint without its signing secret."""
    return responses.Webhook.from_row(Endpoint.find(db, webhook_id))


@webhooks.post("/<webhook_id>")
@writes(WebhookUpdate, SCOPE, once=True, response=responses.Webhook)
def update(db: Db, principal: Principal, body: WebhookUpdate, webhook_id: str) -> responses.Webhook:
    """Update an endpoint, or disable and enable it."""
    row = Endpoint.find(db, webhook_id, lock=True)
    row.change(db, principal, body.changes())
    return responses.Webhook.from_row(row)


@webhooks.delete("/<webhook_id>")
@writes(Nothing, SCOPE, once=True, response=responses.WebhookDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, webhook_id: str) -> responses.WebhookDeleted:
    """Delete an endpoint with its deliveries."""
    Endpoint.find(db, webhook_id).delete(db, principal)
    return responses.WebhookDeleted(id=webhook_id, type="webhook_endpoint_deleted")


@webhooks.post("/<webhook_id>/regenerate_signing_secret")
@writes(Nothing, SCOPE, response=responses.SigningSecret, shown_once="signing_secret")
def regenerate(db: Db, principal: Principal, _body: Nothing, webhook_id: str) -> responses.SigningSecret:
    """Replace an endpoint's signing secret.

    For 24 hours, deliveries also have a signature by the previous secret.
    """
    row = Endpoint.find(db, webhook_id, lock=True)
    return responses.SigningSecret(signing_secret=row.regenerate_secret(db, principal))


@webhooks.post("/<webhook_id>/test")
@writes(WebhookTest, SCOPE, response=responses.Delivery)
def test(db: Db, _principal: Principal, body: WebhookTest, webhook_id: str) -> responses.Delivery:
    """Send an endpoint a test event, which names a session that does not exist."""
    endpoint = Endpoint.find(db, webhook_id)
    return responses.Delivery.of(Delivery.test(db, endpoint, body.event_type or endpoint.enabled_events[0]))


@webhooks.get("/<webhook_id>/deliveries")
@reads(DeliveryList, SCOPE, response=Page[responses.Delivery])
def deliveries(db: Db, _principal: Principal, query: DeliveryList, webhook_id: str) -> Page[responses.Delivery]:
    """List an endpoint's deliveries with their attempts, newest first."""
    endpoint = Endpoint.find(db, webhook_id)
    selection = Selection(Delivery).equal(endpoint_id=endpoint.id, status=query.status, event_type=query.event_type)
    return listed(db, selection.between("created_at", query.between), NEWEST_DELIVERY, query, responses.Delivery.of)


@webhooks.post("/<webhook_id>/deliveries/<delivery_id>/redeliver")
@writes(Nothing, SCOPE, once=True, response=responses.Delivery)
def redeliver(db: Db, _principal: Principal, _body: Nothing, webhook_id: str, delivery_id: str) -> responses.Delivery:
    """Send one delivery again, under the same webhook-id."""
    delivery = Delivery.of(db, webhook_id, delivery_id, lock=True)
    Endpoint.find(db, webhook_id).get_ready()
    delivery.send_again(db)
    return responses.Delivery.of(delivery)


@webhooks.post("/<webhook_id>/redeliver")
@writes(Redelivery, SCOPE, once=True, response=responses.Redelivered)
def redeliver_range(db: Db, _principal: Principal, body: Redelivery, webhook_id: str) -> responses.Redelivered:
    """Send up to 500 deliveries of one status and time again, the oldest first."""
    count, has_more = send_range_again(db, webhook_id, body)
    return responses.Redelivered(type="webhook_redelivery", queued=count, has_more=has_more)


def send_range_again(db: Db, webhook_id: str, body: Redelivery) -> tuple[int, bool]:
    """Queue up to `AT_ONCE` deliveries again, the oldest first. Returns their number and whether more are left. Raises Conflict."""
    Endpoint.find(db, webhook_id).get_ready()
    selection = Selection(Delivery).equal(endpoint_id=webhook_id, status=body.status)
    if body.created_after:
        selection = selection.where("created_at >= %(after)s", after=body.created_after)
    if body.created_before:
        selection = selection.where("created_at < %(before)s", before=body.created_before)
    rows = selection.select(db, "ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE", limit=AT_ONCE + 1)
    for place, row in enumerate(rows[:AT_ONCE]):
        row.send_again(db, has_hint=place < endpoint.AT_ONCE)
    return len(rows[:AT_ONCE]), len(rows) > AT_ONCE
