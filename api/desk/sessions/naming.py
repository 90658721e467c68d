"""A session's agent and cost, as its pages name them."""

from models.database.rows import Db
from models.session.row import Session
from models.workspace.agent import AgentVersion


def agent_name(db: Db, session: Session) -> str:
    """Return the name that the session's agent has in this session."""
    return str(AgentVersion.of_session(db, session.agent_id, session.agent_version).snapshot(session.overrides)["name"])


def cost(session: Session) -> str:
    """Return what the session has cost in dollars, and its budget; empty before a request with a known price."""
    spent = f"${session.list_cost:,.2f}" if session.list_cost else ""
    return f"{spent or '$0.00'} of ${session.max_list_cost:,.2f}" if session.max_list_cost is not None else spent
