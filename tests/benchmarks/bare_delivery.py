"""A Celery task that posts a body by the HTTP client of a real delivery, and does nothing else.

Imported by the workers of `benchmarks.deliveries`.
"""

import asyncio

import httpx2

from workers.celery import app
from workers.guarded_http import OPEN_NOTHING_ELSE, GuardedTransport


@app.task(name="deliver.bare")
def bare(url: str, event_id: str) -> None:
    """Post once. The message carries the URL; a real hint carries only ids."""
    asyncio.run(_post(url, event_id))


async def _post(url: str, event_id: str) -> None:
    transport = GuardedTransport(private=False, max_bytes=0)
    async with httpx2.AsyncClient(transport=transport, timeout=15, **OPEN_NOTHING_ELSE) as client:
        await client.post(url, content=b"x" * 300, headers={"webhook-id": event_id})
