"""The client of `user_cycle` without an SDK, for a comparison with peers: `python bare_client.py URL KEY TOOL IN_FLIGHT`.

It is as small as the peers' own (`peers/reader.py`), and is called as `user_client.py` is.
"""

import asyncio
import json
import sys

import httpx2
from benchmarks.user_client import Client, main

EVENTS = "/v1/sessions/{}/events"


class BareClient(Client):
    """Runs the same cycles over HTTP."""

    def __init__(self, url: str, key: str, tool: str) -> None:
        super().__init__(url, key, tool)
        self.http = httpx2.AsyncClient(base_url=url, headers={"x-api-key": key}, timeout=120, trust_env=False)

    async def cycle(self) -> None:
        """Run one session from its creation to the end of its turn."""
        session = (await self.post("/v1/sessions", self.session)).json()["id"]
        async with self.http.stream("GET", f"{EVENTS.format(session)}/stream") as stream:
            await self.post(EVENTS.format(session), {"events": [self.message]})
            async for line in stream.aiter_lines():
                if not line.startswith("data: "):
                    continue
                event = json.loads(line[6:])
                if event["type"] == "agent.tool_use":
                    allow = {"type": "user.tool_confirmation", "tool_use_id": event["id"], "result": "allow"}
                    await self.post(EVENTS.format(session), {"events": [allow]})
                elif event["type"] == "session.status_idle" and event["stop_reason"]["type"] == "end_turn":
                    return
        raise AssertionError("the stream ended before the session")

    async def post(self, path: str, body: object) -> httpx2.Response:
        """Send a request that must succeed."""
        response = await self.http.post(path, json=body)
        assert response.is_success, response.text
        return response


if __name__ == "__main__":
    asyncio.run(main(BareClient, *sys.argv[1:]))
