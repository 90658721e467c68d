"""The tasks of sub-agents: the first message in a sub-agent's thread says what the agent is to do."""

from collections.abc import Iterable, Mapping
from typing import Any

from models.database.rows import Db
from models.session.event.log import first_message
from models.session.event.row import MESSAGE
from models.session.thread.row import own_id


def tasks_of(db: Db, threads: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the tasks of those threads that are of sub-agents, by the thread's id. `threads`: ids of a session and a thread."""
    of_sub_agents = sorted({(session_id, thread_id) for session_id, thread_id in threads if thread_id != own_id(session_id)})
    if not of_sub_agents:
        return {}
    session_ids, thread_ids = zip(*of_sub_agents, strict=True)
    contents: dict[str, Any] = dict(db.rows(_FIRST, sessions=list(session_ids), threads=list(thread_ids)))
    archived = [first_message(db, *each) for each in of_sub_agents if each[1] not in contents]
    contents |= {message.thread_id: message.body["content"] for message in archived if message}
    return {thread_id: _text(content) for thread_id, content in contents.items()}


def _text(content: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(block["text"] for block in content if block["type"] == "text")


_FIRST = f"""
    SELECT thread.id, first.content FROM unnest(%(sessions)s::text[], %(threads)s::text[]) AS thread(session_id, id)
    CROSS JOIN LATERAL (
        SELECT body -> 'content' AS content FROM event
        WHERE event.session_id = thread.session_id AND event.thread_id = thread.id AND {MESSAGE} ORDER BY seq LIMIT 1
    ) first
"""  # noqa: S608 - a condition of our own
