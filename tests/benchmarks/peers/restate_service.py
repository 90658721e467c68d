"""Restate: a handler per session, whose model calls and command are `run`s and whose decision is an awakeable.

Clients start sessions and send decisions to Restate's own ingress; the front only has the stream. Python's SDK runs in granian.
With an inactivity timeout of 0, a session that waits suspends at once and holds nothing, as in the other systems.
"""

import asyncio
import os
from datetime import timedelta

import cycle
import restate

service = restate.Service("sessions", inactivity_timeout=timedelta(0))


async def ask(messages: list[cycle.Message]) -> cycle.Message:
    """Return the model's reply."""
    return await asyncio.to_thread(cycle.ask, messages)


async def run(session_id: str, reply: cycle.Message) -> cycle.Message:
    """Run the command, and tell of its result."""
    result = await asyncio.to_thread(cycle.run, session_id, reply)
    cycle.tell(session_id, "result")
    return result


async def ask_people(session_id: str, awakeable: str) -> None:
    """Tell the reader the awakeable's address."""
    cycle.tell(session_id, "asked", decide=f"{os.environ['PEER_INGRESS']}/restate/awakeables/{awakeable}/resolve")


@service.handler()
async def start(context: restate.Context, session_id: str) -> None:
    """Run one session."""
    messages = [cycle.PROMPT, await context.run_typed("ask", ask, messages=[cycle.PROMPT])]
    awakeable, decision = context.awakeable()
    await context.run_typed("ask people", ask_people, session_id=session_id, awakeable=awakeable)
    assert await decision, "denied"
    messages.append(await context.run_typed("run", run, session_id=session_id, reply=messages[-1]))
    await context.run_typed("ask again", ask, messages=messages)
    cycle.tell(session_id, "done")


def prepare() -> None:
    """Create nothing: Restate has a store of its own."""


app = restate.app([service])
web = cycle.front(print, print)
