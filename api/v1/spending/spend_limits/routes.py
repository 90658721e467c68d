"""Routes of spend limits: the SDK's `beta.organization.spend_limits`, and the same under `/v1/spend_limits`."""

from flask import Blueprint

from api.door.paging import Order, Selection, listed, page
from api.door.requests import NoQuery, Nothing
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.spending.spend_limits import responses
from api.v1.spending.spend_limits.requests import EffectiveList, SpendLimitList, SpendLimitSet
from models.audit.principal import Principal
from models.database.rows import Db
from models.flow.spend import limits
from models.people.member import Member
from models.people.person import Person
from models.session.spending import effective_limit
from models.workspace.spend_limit import PERIODS, SpendLimit

spend_limits = Blueprint("spend_limits", __name__)

PREFIXES = {"spend_limits": "/v1/spend_limits", "organization_spend_limits": "/v1/organizations/spend_limits"}
"""The prefix of the routes by the name of the blueprint. The SDK uses the second prefix."""
SCOPE = "admin"
NEWEST: Order[SpendLimit] = Order("spend_limits", (SpendLimit.id,))
BY_PERSON: Order[Member] = Order("effective_limits", (Member.person_id,))


@spend_limits.post("")
@writes(SpendLimitSet, SCOPE, once=True, response=responses.SpendLimit)
def create(db: Db, principal: Principal, body: SpendLimitSet) -> responses.SpendLimit:
    """Set the spend limit of the workspace, an agent or a person in a period.

    A limit of the same scope and period is replaced. Sessions that wait at a raised limit continue within a minute.
    """
    row = limits.set_limit(db, principal, body.scope_key, body.period, body.dollars)
    return responses.SpendLimit.of(row)


@spend_limits.get("")
@reads(SpendLimitList, SCOPE, response=Page[responses.SpendLimit])
def index(db: Db, _principal: Principal, query: SpendLimitList) -> Page[responses.SpendLimit]:
    """List the spend limits of the workspace, newest first."""
    selection = Selection(SpendLimit)
    if query.scope_type:
        selection = selection.where("scope_type = ANY(%(types)s)", types=query.scope_type)
    if query.workspace_id is not None:
        selection = selection.where("scope_type = 'workspace' AND scope_id = %(scope_id)s", scope_id=query.workspace_id)
    return listed(db, selection, NEWEST, query, responses.SpendLimit.of)


@spend_limits.get("/effective")
@reads(EffectiveList, SCOPE, response=Page[responses.SpendSummary])
def effective(db: Db, _principal: Principal, query: EffectiveList) -> Page[responses.SpendSummary]:
    """List the limit that applies to each person in each period, and the amount that the person spent.

    It is the lower one of the person's own limit and the workspace's. Limits of agents do not count here.
    """
    periods = query.period or PERIODS
    selection = Selection(Member).where("deactivated_at IS NULL").where(effective_limit.HAS_ONE, periods=list(periods))
    if query.user_ids:
        selection = selection.where("person_id = ANY(%(only)s)", only=query.user_ids)
    members, after = page(db, selection, BY_PERSON, query.limit, query.page)
    ids = [member.person_id for member in members]
    people = {row.id: row for row in db.find(Person, "WHERE id = ANY(%(ids)s)", ids=ids)}
    rows = effective_limit.of_people(db, ids, periods)
    return Page[responses.SpendSummary](
        data=[responses.SpendSummary.of(row, people[row.person_id]) for row in rows], next_page=after
    )


@spend_limits.get("/<spend_limit_id>")
@reads(NoQuery, SCOPE, response=responses.SpendLimit)
def show(db: Db, _principal: Principal, _query: NoQuery, spend_limit_id: str) -> responses.SpendLimit:
    """Get a spend limit."""
    return responses.SpendLimit.of(SpendLimit.find(db, spend_limit_id))


@spend_limits.delete("/<spend_limit_id>")
@writes(Nothing, SCOPE, once=True, response=responses.SpendLimitDeleted)
def delete(db: Db, principal: Principal, _body: Nothing, spend_limit_id: str) -> responses.SpendLimitDeleted:
    """Delete a spend limit.

    Sessions that wait at the limit continue within a minute.
    """
    SpendLimit.remove(db, principal, spend_limit_id)
    return responses.SpendLimitDeleted(id=spend_limit_id, type="spend_limit_deleted")
