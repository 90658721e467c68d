"""A coordinator with sub-agents, for tests that drive their threads verb by verb."""

from dataclasses import dataclass
from typing import Any

from rows.stage import Stage, call

from models.database import ids
from models.database.transactions import transaction
from models.session.thread.row import Thread
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn
from models.workspace.agent import Agent

SELF = {"type": "self"}


def create_agent(stage: Stage, name: str, *, bash: str = "always_ask", **more: Any) -> str:
    """Create an agent with the tool `bash` under this policy. Returns its id. `more` are fields of its body."""
    policy = {"type": bash}
    config = {"type": "bash", "name": "bash", "enabled": True, "permission_policy": policy, "policy_from": "tool", "approval": None}
    toolset = {"type": "agent_toolset_20260401", "configs": [config]}
    toolset["default_config"] = {"enabled": True, "permission_policy": policy}
    body = {"name": name, "description": f"The {name}.", "model": {"id": "stand-in"}, "system": None, "tools": [toolset]}
    body |= {"metadata": {}, "mcp_servers": [], "permission_policy": None, "approval": None, "multiagent": None, "max_turns": None}
    body |= {"skills": [], "execution_identity": {"type": "service_account"}}
    with transaction(stage.workspace_id) as db:
        return Agent.create(db, stage.principal, body | more)[0].id


def roster(*members: str | dict[str, str], inline: bool = False) -> dict[str, Any]:
    """The field `multiagent` with these agents at version 1."""
    agents = [{"type": "agent", "id": member, "version": 1} if isinstance(member, str) else member for member in members]
    if not inline:
        return {"type": "coordinator", "agents": agents}
    sub_agents = {"type": "enabled", "inline_agents": {"type": "enabled"}, "predefined_agents": agents}
    return {
        "type": "multiagent_20261001",
        "subagents": sub_agents,
        "workflows": {"type": "disabled"},
        "advisor": {"type": "disabled"},
    }


def send(agent: Any, message: str = "Do your part.") -> dict[str, Any]:
    """The call that gives a task to an agent: its name, its id, or its definition."""
    return call("send_to_agent", agent=agent, message=message)


def write(thread_id: str, message: str = "And now?") -> dict[str, Any]:
    """The call that writes to a thread again."""
    return call("send_to_agent", session_thread_id=thread_id, message=message)


def list_agents() -> dict[str, Any]:
    """The call that lists the sub-agents."""
    return {"type": "tool_use", "id": ids.new("toolu"), "name": "list_agents", "input": {}}


@dataclass(frozen=True)
class Crew:
    """A session whose agent, `Lead`, has the sub-agents `Reader` and `Writer`."""

    stage: Stage
    session_id: str

    @classmethod
    def begin(cls, stage: Stage, *, inline: bool = False, model: str = "stand-in", **more: Any) -> "Crew":
        """Create the agents and the session, and send it a message. `more` is as for `Stage.session`."""
        of_all = {"model": {"id": model}}
        members = [create_agent(stage, name, **of_all) for name in ("Reader", "Writer")]
        agent = create_agent(stage, "Lead", multiagent=roster(*members, inline=inline), **of_all)
        crew = cls(stage, stage.session(of_agent=agent, **more))
        stage.message(crew.session_id)
        return crew

    @property
    def threads(self) -> list[Thread]:
        """The threads of the sub-agents, in the order in which they began."""
        with transaction(self.stage.workspace_id) as db:
            [rows] = db.read(Thread.of_session(self.session_id))
            return rows[1:]

    @property
    def lead(self) -> Thread:
        """The session's own thread."""
        return self.stage.thread(self.session_id)

    def thread(self, number: int = 0) -> Thread:
        """The thread of a sub-agent, by the order in which they began."""
        return self.threads[number]

    def lead_replies(self, *content: dict[str, Any]) -> list[ToolCall]:
        """Claim the turn of the session's own thread, and store this reply. Returns its calls."""
        return self.stage.reply(self.session_id, *content)

    def begin_turn(self, number: int = 0) -> Turn:
        """Claim the turn of a sub-agent's thread."""
        turn = self.stage.claim_turn(self.session_id, self.thread(number).turn_id or "")
        assert turn, "the thread has a turn to claim"
        return turn

    def replies(self, *content: dict[str, Any], number: int = 0) -> list[ToolCall]:
        """Claim the turn of a sub-agent's thread, and store this reply. Returns its calls."""
        return self.stage.reply(self.session_id, *content, turn=self.begin_turn(number))

    def texts(self, turn: Turn | None) -> list[str]:
        """The texts of the messages that a turn read."""
        return [block["text"] for block in self.stage.prompt(turn)]

    def lead_turn(self) -> Turn:
        """The present turn of the session's own thread."""
        return self.stage.get(Turn, self.lead.turn_id)

    def asked(self, number: int = 0) -> list[ToolCall]:
        """The calls of a sub-agent that wait for people."""
        calls = "WHERE session_id = %(session)s AND thread_id = %(thread)s AND status = 'asked'"
        with transaction(self.stage.workspace_id) as db:
            return db.find(ToolCall, calls, session=self.session_id, thread=self.thread(number).id)
