"""The two tools of an agent that has sub-agents: `list_agents` and `send_to_agent`.

Their calls need no worker: the transaction that allows one carries it out (`models.flow.sub_agents`).
"""

from collections.abc import Mapping
from typing import Any

from models.workspace.roster import allows_inline_agents, has_sub_agents

LIST_AGENTS = "list_agents"
SEND_TO_AGENT = "send_to_agent"
TOOLS = (LIST_AGENTS, SEND_TO_AGENT)
MAX_MESSAGE = 100_000
"""Characters of a message to a sub-agent."""

_NAME = {"type": "string", "minLength": 1, "maxLength": 256}
_INLINE = {
    "type": "object",
    "description": "An agent of your own for this task. It gets only tools and models that you have.",
    "properties": {
        "name": _NAME,
        "description": {"type": "string", "maxLength": 2048, "description": "What the agent is for, in a sentence."},
        "system": {"type": "string", "maxLength": 20_000, "description": "Its system prompt."},
        "model": {"type": "string", "maxLength": 256, "description": "One of your own models. Left out: yours."},
        "tools": {"type": "array", "items": _NAME, "maxItems": 256, "description": "Names of your tools. Left out: all of them."},
    },
    "required": ["name", "description", "system"],
    "additionalProperties": False,
}


def sub_agent_tools(agent: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of both tools, as in `models.workspace.toolset`. An empty list for an agent without sub-agents."""
    if not has_sub_agents(agent):
        return []
    return [_entry(LIST_AGENTS, _LIST, {}, [], "List the sub-agents"), _send(inline=allows_inline_agents(agent["multiagent"]))]


def _send(*, inline: bool) -> dict[str, Any]:
    """Return the entry of `send_to_agent`. Of agent and thread, models often send one as null."""
    meaning = "Name or id of an agent that list_agents names. It begins in a thread of its own."
    by_name = {**_NAME, "type": ["string", "null"], "description": meaning}
    properties = {
        "agent": {"anyOf": [by_name, _INLINE]} if inline else by_name,
        "session_thread_id": {
            "type": ["string", "null"],
            "maxLength": 128,
            "description": "A thread that you began before. It keeps its history.",
        },
        "message": {"type": "string", "minLength": 1, "maxLength": MAX_MESSAGE, "description": "The task, or the next message."},
    }
    return _entry(SEND_TO_AGENT, _SEND, properties, ["message"], "Send a message to a sub-agent")


def _entry(name: str, description: str, properties: dict[str, Any], needs: list[str], prompt: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": needs, "additionalProperties": False}
    return {"name": name, "description": description, "input_schema": schema, "idempotent": False, "prompt": prompt}


_LIST = (
    "List the agents that you can give tasks to, and the threads that you began, with their states. Call it once before you "
    "delegate. Do not call it to wait: the report of a sub-agent comes to you by itself."
)
_SEND = (
    "Give a task to a sub-agent, or write to one again. Send either `agent`, which begins a new thread, or `session_thread_id` "
    "of a thread that you began. The sub-agent sees nothing of your conversation, so the message must hold all that it needs, but "
    "it works on the same files. The call returns at once. When the sub-agent has ended, its report comes to you as a message: end "
    "your turn to wait for it, and do not ask for it."
)
