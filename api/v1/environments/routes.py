"""Routes of environments."""

from flask import Blueprint

from api.door.paging import Order, Selection, listed
from api.door.requests import NoQuery, Nothing
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.environments import responses
from api.v1.environments.requests import EnvironmentCreate, EnvironmentList, EnvironmentUpdate
from models.audit.principal import Principal
from models.database.rows import Db
from models.workspace.environment import Environment, NewEnvironment

environments = Blueprint("environments", __name__, url_prefix="/v1/environments")

NEWEST: Order[Environment] = Order("environments", (Environment.created_at, Environment.id))


@environments.post("")
@writes(EnvironmentCreate, "agents", response=responses.Environment)
def create(db: Db, principal: Principal, body: EnvironmentCreate) -> responses.Environment:
    """Create an environment, with this server's workers or the client's own workers."""
    new = NewEnvironment(
        name=body.name,
        description=body.description,
        metadata=body.metadata,
        self_hosted=body.config is not None and body.config.type == "self_hosted",
    )
    environment = Environment.create(db, principal, new)
    return responses.Environment.of(environment)


@environments.get("")
@reads(EnvironmentList, response=Page[responses.Environment])
def index(db: Db, _principal: Principal, query: EnvironmentList) -> Page[responses.Environment]:
    """List the workspace's environments, newest first.

    Archived environments are left out unless `include_archived` is true.
    """
    selection = Selection(Environment)
    if not query.include_archived:
        selection = selection.where("archived_at IS NULL")
    return listed(db, selection, NEWEST, query, responses.Environment.of)


@environments.get("/<environment_id>")
@reads(NoQuery, response=responses.Environment)
def show(db: Db, _principal: Principal, _query: NoQuery, environment_id: str) -> responses.Environment:
    """Get an environment."""
    return responses.Environment.of(Environment.find(db, environment_id))


@environments.post("/<environment_id>")
@writes(EnvironmentUpdate, "agents", response=responses.Environment)
def update(db: Db, principal: Principal, body: EnvironmentUpdate, environment_id: str) -> responses.Environment:
    """Update an environment's name, description or metadata."""
    environment = Environment.lock(db, environment_id)
    environment.update(db, principal, body.changes())
    return responses.Environment.of(environment)


@environments.post("/<environment_id>/archive")
@writes(Nothing, "agents", once=True, response=responses.Environment)
def archive(db: Db, principal: Principal, _body: Nothing, environment_id: str) -> responses.Environment:
    """Archive an environment, so that no new session can use it."""
    environment = Environment.lock(db, environment_id)
    environment.archive(db, principal)
    return responses.Environment.of(environment)


@environments.delete("/<environment_id>")
@writes(Nothing, "agents", once=True, response=responses.EnvironmentDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, environment_id: str) -> responses.EnvironmentDeleted:
    """Delete an environment that no session uses."""
    Environment.lock(db, environment_id).delete(db, principal)
    return responses.EnvironmentDeleted(id=environment_id, type="environment_deleted")
