"""The client of a peer: `python reader.py FRONT START IN_FLIGHT`. `START` is the address that starts a session.

For each line "N" on its input it runs N cycles (an open stream, a start, a decision, the end) and prints the seconds, as
`user_client.py` does for Assent.
"""

import asyncio
import json
import sys
import time
import uuid

import httpx2


async def cycle(http: httpx2.AsyncClient, front: str, start: str) -> None:
    """Run one session from its start to its end."""
    session_id = uuid.uuid4().hex
    async with http.stream("GET", f"{front}/sessions/{session_id}/stream") as stream:
        async for line in stream.aiter_lines():
            if line == ": open":
                await post(http, start.replace("SESSION", session_id), session_id)
            elif line.startswith("data: "):
                event = json.loads(line[6:])
                if event["step"] == "asked":
                    await post(http, event["decide"], True)
                elif event["step"] == "done":
                    return
    raise AssertionError("the stream ended before the session")


async def post(http: httpx2.AsyncClient, url: str, body: object) -> None:
    """Send a request that must succeed."""
    response = await http.post(url, json=body)
    assert response.is_success, response.text


async def cycles(http: httpx2.AsyncClient, front: str, start: str, count: int, in_flight: int) -> None:
    """Run so many cycles, so many at a time."""
    left = iter(range(count))

    async def one_after_another() -> None:
        for _ in left:
            await asyncio.wait_for(cycle(http, front, start), 120)

    await asyncio.gather(*(one_after_another() for _ in range(in_flight)))


async def main(front: str, start: str, in_flight: str) -> None:
    """Serve the lines of the input."""
    async with httpx2.AsyncClient(timeout=120, trust_env=False) as http:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            began = time.monotonic()
            await cycles(http, front, start, int(line), int(in_flight))
            print(time.monotonic() - began, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
