"""The threads of sub-agents: begun by the calls of their coordinator, which find them again by their ids."""

import json
from typing import Any

from models.database import ids
from models.errors import Invalid
from models.flow.sub_agents.inline_agents import inline_body
from models.flow.sub_agents.messages import deliver
from models.policy.sub_agent_tools import LIST_AGENTS
from models.pure.text import words
from models.session.locked import Locked
from models.session.thread.inline_agent import InlineAgent
from models.session.thread.row import MAX_UNREAD, Thread
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import Result, text
from models.session.tool_call.row import ToolCall
from models.settings import settings
from models.workspace import roster
from models.workspace.roster import Member
from models.workspace.toolset import listings_of


def carry_out(locked: Locked, call: ToolCall) -> None:
    """Carry out an allowed call of a tool for sub-agents, and settle it. The thread at hand is the coordinator's."""
    arguments = CallInput.of(locked.db, call).input
    try:
        result = Result(text(_list(locked) if call.name == LIST_AGENTS else _send(locked, arguments)))
    except Invalid as refusal:
        result = Result.error(str(refusal))
    call.note(locked, "tool_call.finished", is_error=result.is_error)
    call.settle(locked, "done", result)


def _list(locked: Locked) -> str:
    """Return the roster without archived agents, and the threads of sub-agents, as JSON for the model."""
    agent = locked.agent
    members = roster.members(locked.db, agent)
    archived = roster.archived(locked.db, members)
    agents = [{"agent": row.name, "id": row.id, "description": row.description} for row in members if row.id not in archived]
    threads = [
        {"session_thread_id": thread.id, "agent": thread.name, "state": _STATES[thread.status]}
        for thread in locked.threads
        if thread.parent_id == locked.thread.id
    ]
    inline = roster.allows_inline_agents(agent.get("multiagent"))
    return json.dumps({"agents": agents, "inline_agents": inline, "threads": threads}, ensure_ascii=False)


_STATES = {
    "idle": "has ended its task",
    "running": "works",
    "waiting": "waits for a person or a client",
    "rescheduling": "works",
    "stopping": "is being stopped",
    "terminated": "archived: takes no more messages",
}


def _send(locked: Locked, arguments: dict[str, Any]) -> str:
    """Send the message to a thread, which begins now or before. Returns the result for the model. Raises Invalid."""
    agent, thread_id = arguments.get("agent"), arguments.get("session_thread_id")
    if (agent is None) == (thread_id is None):
        raise Invalid("agent", "send either agent or session_thread_id.")
    if not arguments["message"].strip():
        raise Invalid("message", "holds only white space, which models refuse; write the task.")
    _check_messages(locked)
    thread = _find(locked, thread_id) if thread_id is not None else _begin(locked, agent)
    locked.session.agent_messages += 1
    deliver(locked, thread, arguments["message"])
    return words.sent_to_agent(thread.name, thread.id)


def _check_messages(locked: Locked) -> None:
    most = settings().max_agent_messages
    if locked.session.agent_messages >= most:
        raise Invalid(
            "message_limit_reached",
            f"agents may send {most} messages to sub-agents for one message of the user, and have sent them.",
        )


def _find(locked: Locked, thread_id: str) -> Thread:
    """Return a thread that the thread at hand began. Raises Invalid."""
    thread = locked.db.get(Thread, locked.session.id, thread_id)
    if thread is None or thread.parent_id != locked.thread.id:
        raise Invalid("session_thread_id", f"you began no thread {thread_id!r}; call {LIST_AGENTS} for your threads.")
    if thread.status == "terminated":
        raise Invalid("session_thread_id", f"thread {thread_id} is archived and takes no more messages; begin a new one.")
    if thread.unread >= MAX_UNREAD:
        raise Invalid("session_thread_id", f"{MAX_UNREAD} messages wait in thread {thread_id} already; wait for its report.")
    return thread


def _begin(locked: Locked, agent: str | dict[str, Any] | None) -> Thread:
    """Insert and return the thread of a new sub-agent: of the roster, by its name or id, or an inline agent. Raises Invalid."""
    live = [thread for thread in locked.threads if thread.parent_id and thread.status != "terminated"]
    if len(live) >= settings().max_threads:
        raise Invalid(
            "thread_limit_reached",
            f"{len(live)} threads are open, the most in one session. Write to one of them by its session_thread_id, or ask the "
            "user to archive some.",
        )
    if isinstance(agent, dict):
        _check_name(locked, agent["name"])
        body = inline_body(locked.agent, agent, listings_of(locked.db, locked.agent))
        thread = _thread(locked, Member(locked.thread.agent_id, locked.thread.agent_version, body["name"], None), inline=True)
        key = {"session_id": thread.session_id, "thread_id": thread.id, "workspace_id": thread.workspace_id}
        locked.db.insert(InlineAgent(**key, body=body, created_at=locked.now))
    else:
        thread = _thread(locked, _member(locked, agent or ""), inline=False)
    locked.begin_thread(thread)
    locked.note("thread.created", thread.id, agent=thread.agent_id, version=thread.agent_version, inline=thread.inline)
    return thread


def _check_name(locked: Locked, name: str) -> None:
    """Raise Invalid if people would take an inline agent of this name for another agent of the session."""
    others = [locked.agent["name"], *(member.name for member in roster.members(locked.db, locked.agent))]
    if not name.strip() or name.strip().casefold() in {other.strip().casefold() for other in others}:
        raise Invalid("agent.name", f"{name!r} is blank, or the name of another agent; choose one of its own.")


def _member(locked: Locked, name: str) -> Member:
    """Return the agent of the roster with this id, or else with this name. Raises Invalid, for an archived agent too."""
    members = roster.members(locked.db, locked.agent)
    archived = roster.archived(locked.db, members)
    names = ", ".join(member.name for member in members if member.id not in archived) or "none"
    by_id = [member for member in members if name == member.id]
    same_name = by_id or [member for member in members if name.casefold() == member.name.casefold()]
    if not same_name:
        raise Invalid("agent", f"{name!r} is none of your agents: {names}.")
    member = next((member for member in same_name if member.id not in archived), None)
    if member is None:
        raise Invalid("agent", f"{name!r} is archived and begins no new threads; your other agents: {names}.")
    return member


def _thread(locked: Locked, member: Member, *, inline: bool) -> Thread:
    """Return a thread in which nothing has happened."""
    parent = locked.thread
    return Thread(
        session_id=parent.session_id,
        id=ids.new("sthr"),
        workspace_id=parent.workspace_id,
        parent_id=parent.id,
        agent_id=member.id,
        agent_version=member.version,
        name=member.name,
        inline=inline,
        usage={},
        created_at=locked.now,
        updated_at=locked.now,
    )
