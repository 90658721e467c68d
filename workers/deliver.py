"""deliver.send: claim a delivery, send the signed request, record the endpoint's answer, exit."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx2
from standardwebhooks import Webhook

from models.database import clock
from models.database.rows import Stale
from models.database.transactions import transaction
from models.outbox.delivery import Delivery
from models.people.organization import Organization
from models.settings import settings
from workers.celery import app
from workers.guarded_http import OPEN_NOTHING_ELSE, GuardedTransport


@dataclass(frozen=True)
class Request:
    """What one attempt sends. `payload` is JSON."""

    url: str
    payload: str
    headers: dict[str, str]


@app.task(name="deliver.send")
def send(delivery_id: str, workspace_id: str) -> None:
    """One attempt at one delivery. A hint that is late, doubled or wrong finds nothing to claim."""
    with transaction(workspace_id) as db:
        claimed = Delivery.claim(db, delivery_id)
        if claimed is None:
            return
        delivery, endpoint = claimed
        request = signed(delivery, endpoint.url, endpoint.secrets(clock.now(db)), Organization.id_of(db))
    started = time.monotonic()
    status, error = asyncio.run(_post(request))
    seconds = time.monotonic() - started
    try:
        with transaction(workspace_id) as db:
            Delivery.held(db, delivery_id, delivery.fence).finish(db, status=status, error=error, seconds=seconds)
    except Stale:
        return  # the attempt took longer than its lease: the next one has the delivery


def signed(delivery: Delivery, url: str, secrets: list[str], organization_id: str) -> Request:
    """Return the request of an attempt, signed by Standard Webhooks with each of the secrets."""
    payload, now = delivery.payload(organization_id), datetime.now(UTC)
    signatures = [Webhook(secret).sign(delivery.event_id, now, payload) for secret in secrets]
    headers = {
        "content-type": "application/json",
        "user-agent": "Assent-Webhooks",
        "webhook-id": delivery.event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    return Request(url, payload, headers)


async def _post(request: Request) -> tuple[int | None, str | None]:
    """Send the request. Returns the response's status, and what went wrong unless it is a 2xx. Nothing of the body is read."""
    transport = GuardedTransport(private=False, max_bytes=0)
    try:
        async with (
            asyncio.timeout(settings().webhook_seconds),
            httpx2.AsyncClient(transport=transport, timeout=settings().webhook_seconds, **OPEN_NOTHING_ELSE) as client,
            client.stream("POST", request.url, content=request.payload, headers=request.headers) as response,
        ):
            status = response.status_code
    except TimeoutError:
        return None, f"No response within {settings().webhook_seconds:g} s."
    except httpx2.HTTPError as error:
        return None, f"{type(error).__name__}: {error}"[:300]
    if response.is_success:
        return status, None
    return status, "Redirects are not followed." if response.is_redirect else f"The response was {status}."
