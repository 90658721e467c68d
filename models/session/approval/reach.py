"""Whose calls a grant covers: the agent, the thread or the session that it reaches, in Python and in SQL side by side."""

from dataclasses import dataclass
from typing import Any, Literal

from models.session.thread.row import Thread

Kind = Literal["agent", "thread", "session"]


@dataclass(frozen=True)
class Reach:
    """The threads whose calls a grant covers."""

    kind: Kind
    """`agent`: those of the agent that asked. `thread`: the thread that asked. `session`: all threads of its session."""
    session_id: str | None
    """None: in every session of the agent, whatever its version is."""
    agent_id: str
    agent_version: int | None
    """The version that asked."""
    thread_id: str | None
    """The thread that asked. Rows of a release without sub-agents have no version and no thread, and then cover no thread."""

    @classmethod
    def of(cls, thread: Thread, scope: str, *, include_sub_agents: bool = False) -> "Reach":
        """Return the reach of a grant that is given for a call of this thread.

        An agent that another agent defined exists in its thread alone, so that a grant reaches no other agent of the same name.
        """
        kind: Kind = "session" if include_sub_agents else "thread" if thread.inline else "agent"
        session_id = None if scope == "always" else thread.session_id
        return cls(kind, session_id, thread.agent_id, thread.agent_version, thread.id)

    def covers(self, thread: Thread) -> bool:
        """True if the grant covers calls of this thread: `COVERS`."""
        if self.session_id is None:
            return self.kind == "agent" and not thread.inline and thread.agent_id == self.agent_id
        if self.session_id != thread.session_id:
            return False
        same_agent = not thread.inline and (thread.agent_id, thread.agent_version) == (self.agent_id, self.agent_version)
        return self.kind == "session" or thread.id == self.thread_id or (self.kind == "agent" and same_agent)

    def in_words(self, name: str) -> str:
        """Return whose calls the grant covers, for people. `name`: the agent's."""
        if self.session_id is None:
            return f"calls of the agent {name} in every session"
        if self.kind == "session":
            return "calls of every agent in this session, with all sub-agents"
        if self.kind == "thread":
            return f"calls of the sub-agent {name} in this thread alone"
        return f"calls of the agent {name}, version {self.agent_version}, in this session"


COVERS_SESSION = """
    session_id = %(session)s AND (reach_kind = 'session' OR thread_id = %(thread)s
    OR (reach_kind = 'agent' AND NOT %(inline)s AND agent_id = %(agent)s AND agent_version = %(version)s))
"""
COVERS_AGENT = "session_id IS NULL AND reach_kind = 'agent' AND NOT %(inline)s AND agent_id = %(agent)s"
"""Together `Reach.covers`, as two conditions on a row of `approval_grant`, since one with OR would fit no index."""


def values_of(thread: Thread) -> dict[str, Any]:
    """Return the values of the two conditions for a thread."""
    return {
        "session": thread.session_id,
        "thread": thread.id,
        "inline": thread.inline,
        "agent": thread.agent_id,
        "version": thread.agent_version,
    }
