"""A second thread of a session, as an agent begins it for a sub-agent."""

from rows.stage import Stage, call

from models.database import ids
from models.flow.sub_agents.messages import deliver
from models.session.locked import Locked
from models.session.thread.row import Thread
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn


class Child:
    """A thread that the session's own thread began, with a message to read. Its agent is the session's."""

    def __init__(self, stage: Stage, session_id: str, name: str = "Child") -> None:
        self.stage, self.session_id = stage, session_id
        self.id: str = stage.locked(session_id, lambda locked: _begin(locked, name))

    @property
    def row(self) -> Thread:
        """The thread as it is now."""
        return self.stage.get(Thread, self.session_id, self.id)

    def begin(self) -> Turn:
        """Claim the thread's turn."""
        turn = self.stage.claim_turn(self.session_id, self.row.turn_id or "")
        assert turn, "the thread has a turn to claim"
        return turn

    def reply(self, *content: dict[str, object]) -> list[ToolCall]:
        """Have the thread's model reply. Returns the calls of the reply."""
        return self.stage.reply(self.session_id, *content, turn=self.begin())

    def propose(self, name: str = "bash", **arguments: object) -> ToolCall:
        """Have the thread's model reply with one call."""
        return self.reply(call(name, **arguments))[0]


def _begin(locked: Locked, name: str) -> str:
    own = locked.thread
    child = Thread(
        session_id=own.session_id,
        id=ids.new("sthr"),
        workspace_id=own.workspace_id,
        parent_id=own.id,
        agent_id=own.agent_id,
        agent_version=own.agent_version,
        name=name,
        usage={},
        created_at=locked.now,
        updated_at=locked.now,
    )
    locked.begin_thread(child)
    deliver(locked, child, "Do your part.")
    return child.id
