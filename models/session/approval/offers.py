"""The options that people have by the settings of now: to an approval that waits, and for the tools of grants."""

from collections.abc import Iterable

from models.database.rows import Db
from models.policy.session_policies import SessionPolicies
from models.pure.offer import EVERYTHING, Offer
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.row import Session
from models.workspace.agent import Agent, AgentVersion
from models.workspace.row import Workspace
from models.workspace.toolset import listings_of


def offer_now(db: Db, session: Session, approval: Approval) -> Offer:
    """Return the offer that a decision would find: the approval's own, narrowed by the settings of now."""
    if not approval.traits.asks_to_run:
        return approval.offer
    agent = session.agent(db)
    policies = SessionPolicies.of(agent, Workspace.policies(db), listings_of(db, agent))
    return approval.offer.and_also(policies.quorum(approval.tool, approval.level).offer)


def offers_of(db: Db, grants: Iterable[Grant]) -> dict[str, Offer]:
    """Return the present offer of each grant's tool, by the grant's id: in its session, or for its agent's newest version."""
    rows = list(grants)
    sessions = db.find(Session, "WHERE id = ANY(%(ids)s)", ids=sorted({row.session_id for row in rows if row.session_id}))
    agents = db.find(Agent, "WHERE id = ANY(%(ids)s)", ids=sorted({row.agent_id for row in rows if not row.session_id}))
    bodies = {session.id: session.agent(db) for session in sessions}
    bodies |= {agent.id: AgentVersion.of_session(db, agent.id, agent.version).snapshot() for agent in agents}
    workspace = Workspace.policies(db) if bodies else {}
    policies = {owner: SessionPolicies.of(body, workspace, listings_of(db, body)) for owner, body in bodies.items()}
    owners = {row.id: row.session_id or row.agent_id for row in rows}
    return {row.id: policies[owners[row.id]].quorum(row.tool).offer if owners[row.id] in policies else EVERYTHING for row in rows}
