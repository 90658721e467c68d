"""The options that people have by the settings of now: to an approval that waits, and for the tools of grants."""

from collections.abc import Iterable

from models.database.rows import Db
from models.policy.session_policies import SessionPolicies
from models.pure.offer import EVERYTHING, Offer
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.row import Session
from models.session.thread.row import Thread
from models.workspace.agent import Agent, AgentVersion
from models.workspace.row import Workspace
from models.workspace.toolset import listings_of


def offer_now(db: Db, session: Session, approval: Approval) -> Offer:
    """Return the offer that a decision would find: the approval's own, narrowed by the settings of now."""
    if not approval.traits.asks_to_run:
        return approval.offer
    policies = session.policies_of(db, approval.thread(db), Workspace.policies(db))
    return approval.offer.and_also(policies.quorum(approval.tool, approval.level).offer)


def offers_of(db: Db, grants: Iterable[Grant]) -> dict[str, Offer]:
    """Return the present offer of each grant's tool by the grant's id: for its thread, or for the newest version of its agent."""
    rows = list(grants)
    sessions = db.find(Session, "WHERE id = ANY(%(ids)s)", ids=sorted({row.session_id for row in rows if row.session_id}))
    agents = db.find(Agent, "WHERE id = ANY(%(ids)s)", ids=sorted({row.agent_id for row in rows if not row.session_id}))
    workspace = Workspace.policies(db) if sessions or agents else {}
    of_threads = [row for row in rows if row.session_id and row.thread_id]
    Thread.read_ahead(db, of_threads)
    policies: dict[str | None, SessionPolicies] = {}
    for session in sessions:
        for thread in {db.get_one(Thread, session.id, row.thread_id) for row in of_threads if row.session_id == session.id}:
            policies[thread.id] = session.policies_of(db, thread, workspace)
    for agent in agents:
        body = AgentVersion.of_session(db, agent.id, agent.version).snapshot()
        policies[agent.id] = SessionPolicies.of(body, workspace, listings_of(db, body))
    owners = {row.id: row.thread_id if row.session_id else row.agent_id for row in rows}
    return {row.id: policies[owners[row.id]].quorum(row.tool).offer if owners[row.id] in policies else EVERYTHING for row in rows}
