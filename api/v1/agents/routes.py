"""Routes of agents."""

from collections.abc import Iterable

from flask import Blueprint

from api.door.paging import Order, Selection, listed, page
from api.door.requests import Nothing, Paged
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.agents import loosening, responses
from api.v1.agents.multiagent import check_roster, normal_multiagent
from api.v1.agents.requests import AgentCreate, AgentList, AgentQuery, AgentUpdate
from api.v1.agents.servers import check_servers
from api.v1.policy.approvers import check_agent_approvers
from models.audit.principal import Principal
from models.database.rows import Db
from models.workspace.agent import Agent, AgentVersion
from models.workspace.row import Workspace

agents = Blueprint("agents", __name__, url_prefix="/v1/agents")

NEWEST: Order[Agent] = Order("agents", (Agent.created_at, Agent.id))
VERSIONS: Order[AgentVersion] = Order("versions", (AgentVersion.version,))


@agents.post("")
@writes(AgentCreate, "agents", response=responses.Agent)
def create(db: Db, principal: Principal, body: AgentCreate) -> responses.Agent:
    """Create an agent at version 1."""
    return responses.Agent.of(*make(db, principal, body))


def make(db: Db, principal: Principal, body: AgentCreate) -> tuple[Agent, AgentVersion]:
    """Create an agent. Returns the agent with its version 1. Raises Invalid, Denied."""
    fields = body.normal()
    fields["multiagent"] = normal_multiagent(db, body.multiagent, fields)
    loosening.check_agent(principal, body, None, fields)
    check_servers(db, fields, body.model_fields_set)
    check_roster(db, fields, body.model_fields_set)
    check_agent_approvers(db, fields, Workspace.policies(db), body.model_fields_set)
    return Agent.create(db, principal, fields)


@agents.get("")
@reads(AgentList, response=Page[responses.Agent])
def index(db: Db, _principal: Principal, query: AgentList) -> Page[responses.Agent]:
    """List the workspace's agents at their newest versions, newest agents first.

    Archived agents are left out unless `include_archived` is true.
    """
    selection = Selection(Agent).between("created_at", query.between)
    if not query.include_archived:
        selection = selection.where("archived_at IS NULL")
    rows, after = page(db, selection, NEWEST, query.limit, query.page)
    newest = heads(db, rows)
    return Page[responses.Agent](data=[responses.Agent.of(row, newest[row.id]) for row in rows], next_page=after)


@agents.get("/<agent_id>")
@reads(AgentQuery, response=responses.Agent)
def show(db: Db, _principal: Principal, query: AgentQuery, agent_id: str) -> responses.Agent:
    """Get an agent at its newest version, or at the version in the query."""
    agent = Agent.find(db, agent_id)
    return responses.Agent.of(agent, agent.at(db, query.version))


@agents.post("/<agent_id>")
@writes(AgentUpdate, "agents", response=responses.Agent)
def update(db: Db, principal: Principal, body: AgentUpdate, agent_id: str) -> responses.Agent:
    """Update an agent, which makes a new version if anything changes.

    A field that is left out is kept. The response is a 409 if `version` is sent and is not the newest version.
    """
    return responses.Agent.of(*change(db, principal, body, agent_id))


def change(db: Db, principal: Principal, body: AgentUpdate, agent_id: str) -> tuple[Agent, AgentVersion]:
    """Update an agent. Returns the agent with its newest version. Raises Invalid, Denied, Conflict, NotFound."""
    agent = Agent.lock(db, agent_id)
    before, changes = agent.at(db).body, body.changes()
    if "multiagent" in body.model_fields_set:
        changes["multiagent"] = normal_multiagent(db, body.multiagent, {"id": agent.id}, before.get("multiagent"))
    loosening.check_agent(principal, body, before, changes)
    version = agent.update(db, principal, changes, version=body.version)
    check_servers(db, version.body, body.model_fields_set)  # the new version, with the lists that the request leaves out
    check_roster(db, version.body, body.model_fields_set)
    check_agent_approvers(db, version.body, Workspace.policies(db), body.model_fields_set)
    return agent, version


@agents.post("/<agent_id>/archive")
@writes(Nothing, "agents", once=True, response=responses.Agent)
def archive(db: Db, principal: Principal, _body: Nothing, agent_id: str) -> responses.Agent:
    """Archive an agent, so that no new session can use it."""
    agent = Agent.lock(db, agent_id)
    agent.archive(db, principal)
    return responses.Agent.of(agent, agent.at(db))


@agents.get("/<agent_id>/versions")
@reads(Paged, response=Page[responses.Agent])
def versions(db: Db, _principal: Principal, query: Paged, agent_id: str) -> Page[responses.Agent]:
    """List all versions of an agent, newest first."""
    agent = Agent.find(db, agent_id)
    selection = Selection(AgentVersion).equal(agent_id=agent.id)
    return listed(db, selection, VERSIONS, query, lambda row: responses.Agent.of(agent, row))


def heads(db: Db, agents: Iterable[Agent]) -> dict[str, AgentVersion]:
    """Return the newest version of each agent, by the agent's id."""
    clauses = "WHERE (agent_id, version) IN (SELECT id, version FROM agent WHERE id = ANY(%(ids)s))"
    return {version.agent_id: version for version in db.find(AgentVersion, clauses, ids=[agent.id for agent in agents])}
