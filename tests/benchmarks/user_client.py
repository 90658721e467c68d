"""A client as users write it: `python user_client.py URL KEY TOOL IN_FLIGHT`, with the official SDK and nothing else.

For each line "N" on its input it runs N cycles (a session, an open stream, a message, an approval, the end) and prints the seconds.
"""

import asyncio
import json
import sys
import time

from anthropic import AsyncAnthropic

COMMANDS = {"bash": {"command": "echo done"}, "glob": {"pattern": "*.none"}}


class Client:
    """Runs cycles of one agent that may ask for one tool."""

    def __init__(self, url: str, key: str, tool: str) -> None:
        self.beta = AsyncAnthropic(base_url=url, api_key=key, max_retries=0).beta
        self.tool = tool
        prompt = f"call {tool} {json.dumps(COMMANDS[tool])}\nthen\nsay done"
        self.message = {"type": "user.message", "content": [{"type": "text", "text": prompt}]}

    async def prepare(self) -> None:
        """Create the agent, and find the environment."""
        tool = {"name": self.tool, "enabled": True, "permission_policy": {"type": "always_ask"}}
        toolset = {"type": "agent_toolset_20260401", "default_config": {"enabled": False}, "configs": [tool]}
        agent = await self.beta.agents.create(name="Bench", model="claude-bench", tools=[toolset])
        environments = await self.beta.environments.list()
        self.session = {"agent": agent.id, "environment_id": environments.data[0].id}

    async def cycle(self) -> None:
        """Run one session from its creation to the end of its turn."""
        session = await self.beta.sessions.create(**self.session)
        async with await self.beta.sessions.events.stream(session.id) as stream:
            await self.beta.sessions.events.send(session.id, events=[self.message])
            async for event in stream:
                if event.type == "agent.tool_use":
                    allow = {"type": "user.tool_confirmation", "tool_use_id": event.id, "result": "allow"}
                    await self.beta.sessions.events.send(session.id, events=[allow])
                elif event.type == "agent.tool_result":
                    assert not event.is_error, event
                elif event.type == "session.status_idle" and event.stop_reason.type == "end_turn":
                    return
        raise AssertionError("the stream ended before the session")

    async def cycles(self, count: int, in_flight: int) -> None:
        """Run so many cycles, so many at a time."""
        left = iter(range(count))

        async def one_after_another() -> None:
            for _ in left:
                await asyncio.wait_for(self.cycle(), 120)

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))


async def main(kind: type[Client], url: str, key: str, tool: str, in_flight: str) -> None:
    """Serve the lines of the input, by this kind of client."""
    client = kind(url, key, tool)
    await client.prepare()
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        began = time.monotonic()
        await client.cycles(int(line), int(in_flight))
        print(time.monotonic() - began, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Client, *sys.argv[1:]))
