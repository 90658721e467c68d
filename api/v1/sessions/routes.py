"""Routes of sessions."""

from flask import Blueprint

from api.door.paging import Order, Selection, both_ways
from api.door.requests import Erase, NoQuery, Nothing
from api.door.routes import reads, writes
from api.v1.agents import loosening
from api.v1.agents.multiagent import check_tool_names
from api.v1.agents.servers import check_servers
from api.v1.approvals.visible import find_session
from api.v1.events.requests import plain
from api.v1.model import check_override
from api.v1.policy.approvers import check_agent_approvers
from api.v1.sessions import responses
from api.v1.sessions.requests import ResourceList, SessionCreate, SessionList, SessionUpdate
from api.v1.sessions.waiting import waiting_on
from api.v1.spending.amounts import load_active_sums
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Invalid
from models.flow.begin import sessions as verbs
from models.flow.begin import updates
from models.flow.begin.messages import receive
from models.flow.lock import lock
from models.operate.personal_data import session as erasing
from models.session.row import Session
from models.settings import settings
from models.workspace.agent import Agent, AgentVersion

sessions = Blueprint("sessions", __name__, url_prefix="/v1/sessions")

NEWEST: Order[Session] = Order("sessions", (Session.created_at, Session.id))


@sessions.post("")
@writes(SessionCreate, "sessions", response=responses.Session)
def create(db: Db, principal: Principal, body: SessionCreate) -> responses.Session:
    """Create a session, which starts to run if the request has initial events.

    To override the tools, MCP servers, policy or approval settings of the agent, the key also needs the scope `agents`.
    """
    session = begin(db, principal, body)
    return responses.Session.of(db, session, [], Session.held_work(db, [session]))


def begin(db: Db, principal: Principal, body: SessionCreate) -> Session:
    """Create a session, and send it the initial events. Returns the session. Raises Invalid, Denied."""
    version = _version(db, body)
    overrides = body.agent.overrides()
    loosening.check_session(principal, body.agent, version.body, overrides)
    agent = version.snapshot(overrides)
    if "model" in overrides:
        check_override(agent["model"])
    check_servers(db, agent, overrides, at="agent.")
    check_tool_names(agent, overrides, at="agent.")
    new = verbs.NewSession(
        version=version,
        overrides=overrides,
        environment_id=body.environment_id,
        title=body.title or None,
        metadata=body.metadata or {},
        max_turns=body.max_turns or version.body["max_turns"] or settings().max_turns,
        chat_approvals=bool(version.body.get("chat_approvals") if body.chat_approvals is None else body.chat_approvals),
        on_ask=body.on_ask or "inbox",
        on_behalf_of=body.on_behalf_of,
        max_list_cost=body.budget.dollars if body.budget else None,
    )
    locked = verbs.create(db, principal, new)
    check_agent_approvers(db, locked.session.agent(db), locked.policies, overrides, at="agent.")
    if body.initial_events:
        receive(locked, [plain(event) for event in body.initial_events])
    return locked.session


@sessions.get("")
@reads(SessionList, response=responses.SessionPage)
def index(db: Db, _principal: Principal, query: SessionList) -> responses.SessionPage:
    """List the workspace's sessions, newest first by default."""
    order = NEWEST if query.order == "desc" else NEWEST.reversed()
    rows, after, before = both_ways(db, selected(query), order, query.limit, query.page)
    waiting, held_work = waiting_on(db, rows), Session.held_work(db, rows)
    load_active_sums(db, rows)
    data = [responses.Session.of(db, row, waiting[row.id], held_work) for row in rows]
    return responses.SessionPage(data=data, next_page=after, prev_page=before)


@sessions.get("/<session_id>")
@reads(NoQuery, "read or own", response=responses.Session)
def show(db: Db, principal: Principal, _query: NoQuery, session_id: str) -> responses.Session:
    """Get a session with the calls that wait for somebody."""
    return _response(db, find_session(db, principal, session_id))


@sessions.post("/<session_id>")
@writes(SessionUpdate, "sessions", response=responses.Session)
def update(db: Db, principal: Principal, body: SessionUpdate, session_id: str) -> responses.Session:
    """Update a session's title, metadata, budget, tools or MCP servers.

    Tools and MCP servers can change only while the session does not run. Their change also needs the scope `agents`.
    """
    locked = lock(db, session_id, principal)
    session, changes = locked.session, body.changes()
    if body.agent:
        loosening.check_session(principal, body.agent, session.configured(db), changes)
    updates.update(locked, changes)
    check_servers(db, session.agent(db), changes, at="agent.")
    check_tool_names(session.agent(db), changes, at="agent.")
    check_agent_approvers(db, session.agent(db), locked.policies, changes, at="agent.")
    return _response(db, session)


@sessions.delete("/<session_id>")
@writes(Nothing, "sessions", once=True, response=responses.SessionDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, session_id: str) -> responses.SessionDeleted:
    """Delete a session with its history."""
    verbs.delete(lock(db, session_id, principal))
    return responses.SessionDeleted(id=session_id, type="session_deleted")


@sessions.post("/<session_id>/erase")
@writes(Erase, "admin", once=True, response=responses.SessionErased)
def erase(db: Db, principal: Principal, body: Erase, session_id: str) -> responses.SessionErased:
    """Erase a session: delete it, with the texts of its audit, of which ids, times and hashes stay.

    What waits is cancelled. A session that runs is a 409: send `user.interrupt` first. A session that is deleted already can be
    erased, too.
    """
    erasing.erase(db, session_id, body.reason, by=principal)
    return responses.SessionErased(id=session_id, type="session_erased")


@sessions.post("/<session_id>/archive")
@writes(Nothing, "sessions", once=True, response=responses.Session)
def archive(db: Db, principal: Principal, _body: Nothing, session_id: str) -> responses.Session:
    """Archive a session: the session accepts no more events, and its history stays."""
    locked = lock(db, session_id, principal)
    verbs.archive(locked)
    return _response(db, locked.session)


@sessions.get("/<session_id>/resources")
@reads(ResourceList, response=responses.NoResources)
def resources(db: Db, principal: Principal, _query: ResourceList, session_id: str) -> responses.NoResources:
    """List a session's resources: always an empty list, since this server mounts no resources."""
    find_session(db, principal, session_id)
    return responses.NoResources(data=[], next_page=None)


def _version(db: Db, body: SessionCreate) -> AgentVersion:
    """Return the version that the session names. Raises Invalid."""
    agent, version = Agent.in_field(db, body.agent.id, body.agent.version)
    if agent.archived_at:
        raise Invalid("agent", f"{agent.id} is archived; choose an agent that is not archived.")
    return version


def selected(query: SessionList) -> Selection[Session]:
    """Return the sessions that the query selects."""
    selection = Selection(Session).between("created_at", query.between)
    if not query.include_archived:
        selection = selection.where("archived_at IS NULL")
    if query.agent_id:
        selection = selection.equal(agent_id=query.agent_id, agent_version=query.agent_version)
    if query.waiting:
        selection = selection.among("waits_for", responses.WAITING[query.waiting])
    if query.statuses:
        ours = [status for status, theirs in responses.STATUSES.items() if theirs in query.statuses]
        selection = selection.where("status = ANY(%(statuses)s)", statuses=ours)
    return selection


def _response(db: Db, session: Session) -> responses.Session:
    return responses.Session.of(db, session, waiting_on(db, [session])[session.id], Session.held_work(db, [session]))
