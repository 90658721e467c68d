"""deliver.send: claim a delivery, send the signed request, record the endpoint's response, exit."""

import logging
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from standardwebhooks import Webhook

from models.database import clock
from models.database.encryption import Undecryptable
from models.database.rows import Db, Stale
from models.database.transactions import transaction
from models.errors import NotFound
from models.operate.failing import TaskRow, bounded
from models.outbox import claims
from models.outbox.claims import DueDelivery
from models.outbox.delivery import Delivery
from models.outbox.endpoint import AT_ONCE, Endpoint
from models.people.organization import Organization
from models.settings import settings
from workers import guarded_http
from workers.celery import app
from workers.guarded_http import NoResponse
from workers.outcome import FAILED, FAILURES, LOST, SENT, TRIES_AGAIN, Ends, conclude, of_several, task

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeliveryRequest:
    """The signed request of one attempt. `payload` is JSON."""

    url: str
    payload: str
    headers: dict[str, str]
    is_probe: bool
    """As in `DueDelivery`."""


SLOW_AT_ONCE = 10
"""Threads that send to endpoints which are new, slow or failing. The others stay free for endpoints that respond soon."""
_slots = threading.BoundedSemaphore(SLOW_AT_ONCE)
HOLD_SECONDS = 1.0
"""How long a thread continues with one endpoint's deliveries before it turns to others."""


@app.task(name="deliver.send", throws=FAILURES)
def send(delivery_id: str, workspace_id: str) -> str:
    """Attempt one delivery, then the next ones that are due for its endpoint. Returns the outcome, or raises it for Flower.

    A late, doubled or wrong hint claims nothing. Nor does a hint for a busy endpoint, whose worker continues with the delivery.
    """
    return conclude(of_several(_send(delivery_id, workspace_id)))


def _send(delivery_id: str, workspace_id: str) -> Ends:
    """Return the end of each attempt, with the event's type, the response's status or the reason."""
    ends: Ends = []
    until = time.monotonic() + HOLD_SECONDS
    with ExitStack() as slot:
        work: tuple[Delivery, DeliveryRequest] | None = None
        with bounded("deliver.send", TaskRow(Delivery, delivery_id, workspace_id)), transaction(workspace_id) as db:
            work = _claim(db, claims.due(db, delivery_id), slot, ends)
        while work is not None:
            delivery, request = work
            start_time = time.monotonic()
            status, error = _post(request)
            end_time = time.monotonic()
            slot.close()
            try:
                with transaction(workspace_id) as db:
                    row = delivery.as_held(db, lock=True)
                    row.finish(db, status=status, error=error, seconds=end_time - start_time)
                    end = _end(row, str(status or "no response"))
                    if request.is_probe and error is None:
                        claims.hint_next(db, delivery.endpoint_id, AT_ONCE)
                    elif end_time >= until:
                        claims.hint_next(db, delivery.endpoint_id)
            except (Stale, NotFound):
                # Another attempt has the delivery, as this one took longer than its lease; or the endpoint was deleted.
                return [*ends, (LOST, "")]
            ends.append(end)
            work = _claim_next(delivery, slot, ends) if end_time < until else None
    return ends


def _end(delivery: Delivery, reason: str) -> tuple[str, str]:
    """Return the end of an attempt, and a word about it."""
    if delivery.status == "done":
        return SENT, delivery.event_type
    return TRIES_AGAIN if delivery.status == "queued" else FAILED, reason


def _claim_next(delivery: Delivery, slot: ExitStack, ends: Ends) -> tuple[Delivery, DeliveryRequest] | None:
    """Return the next delivery of the same endpoint with its request, or None. In a transaction of its own, because a delivery that
    cannot be claimed must not undo the end of the one before it: its own hint counts that failure.
    """
    try:
        with transaction(delivery.workspace_id) as db:
            return _claim(db, claims.next_due(db, delivery.endpoint_id), slot, ends)
    except Exception as error:  # noqa: BLE001 - whatever raises, the endpoint's next hint goes on
        log.error("endpoint %s: no next delivery could be claimed (%s)", delivery.endpoint_id, type(error).__name__)
        return None


def _take_slot(slot: ExitStack, endpoint: Endpoint) -> bool:
    """Return True if the endpoint is quick, or fewer than `SLOW_AT_ONCE` threads send to other endpoints.

    Closing `slot` gives the thread's slot back.
    """
    if endpoint.is_quick:
        return True
    if not _slots.acquire(blocking=False):
        return False
    slot.callback(_slots.release)
    return True


def _claim(db: Db, due: DueDelivery | None, slot: ExitStack, ends: Ends) -> tuple[Delivery, DeliveryRequest] | None:
    """Claim a delivery, and return it with its request.

    None without a delivery or a slot for this thread, or if there can be no request: this ends the attempt.
    """
    if due is None or not _take_slot(slot, due.endpoint):
        return None
    due.claim(db, task())
    delivery, endpoint, _, is_probe = due
    now, organization_id = clock.now(db), Organization.id_of(db)
    try:
        return delivery, signed_request(delivery, endpoint, organization_id, now, is_probe=is_probe)
    except Undecryptable as error:
        problem = f"The signing secret cannot be read. {error}"
    except Exception as error:  # noqa: BLE001 - whatever the row holds, the attempt ends
        problem = f"The request could not be written ({type(error).__name__})."
    delivery.finish(db, status=None, error=problem, seconds=0)
    ends.append(_end(delivery, "no request"))
    return None


def signed_request(
    delivery: Delivery, endpoint: Endpoint, organization_id: str, now: datetime, *, is_probe: bool
) -> DeliveryRequest:
    """Return the request of an attempt, signed by Standard Webhooks with each of the endpoint's secrets at `now`."""
    payload = delivery.payload(organization_id)
    signatures = [Webhook(secret).sign(delivery.event_id, now, payload) for secret in endpoint.secrets(now)]
    headers = {
        "content-type": "application/json",
        "user-agent": "Assent-Webhooks",
        "webhook-id": delivery.event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    return DeliveryRequest(endpoint.url, payload, headers, is_probe)


def _post(request: DeliveryRequest) -> tuple[int | None, str | None]:
    """Send the request. Returns the response's status, and the error unless the status is a 2xx. Reads nothing of the body."""
    try:
        response = guarded_http.post(request.url, request.payload, request.headers, settings().webhook_seconds)
    except NoResponse as error:
        return None, str(error)
    status = response.status_code
    if response.is_success:
        return status, None
    return status, "Redirects are not followed." if response.is_redirect else f"The response was {status}."
