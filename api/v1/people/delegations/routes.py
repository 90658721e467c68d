"""Routes of delegations: a person lets another person decide for a time."""

from flask import Blueprint

from api.door.errors import Denied
from api.door.paging import Order, Selection, listed
from api.door.requests import Nothing
from api.door.responses import Page
from api.door.routes import reads, writes
from api.v1.people.delegations import responses
from api.v1.people.delegations.requests import DelegationGive, DelegationList
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Invalid, NotFound
from models.notices import delegating
from models.people.delegation import Delegation, Terms
from models.people.principal import PersonPrincipal

delegations = Blueprint("delegations", __name__, url_prefix="/v1/delegations")

NEWEST: Order[Delegation] = Order("delegations", (Delegation.created_at, Delegation.id))
_OWN = "(from_person_id = %(me)s OR to_person_id = %(me)s)"
_LIVE = "(ended_at IS NULL AND ends_at > assent_now())"


@delegations.get("")
@reads(DelegationList, "read or own", response=Page[responses.Delegation])
def index(db: Db, principal: Principal, query: DelegationList) -> Page[responses.Delegation]:
    """List delegations, newest first.

    A person whose role may read only their own approvals gets the delegations from and to themselves.
    """
    matching = Selection(Delegation)
    if "read" not in principal.scopes:
        matching = matching.where(_OWN, me=principal.id)
    if query.live is not None:
        matching = matching.where(_LIVE if query.live else f"NOT {_LIVE}")
    return listed(db, matching, NEWEST, query, responses.Delegation.of)


@delegations.post("")
@writes(DelegationGive, "approvals or admin", response=responses.Delegation)
def give(db: Db, principal: Principal, body: DelegationGive) -> responses.Delegation:
    """Delegate a person's decisions, all or those of one group, to another person for a time.

    People delegate their own decisions. An admin, or an API key with the scope `admin`, may name another person as `from`: that
    person is notified, and the delegation counts once that person accepts it. Nobody delegates another's decisions to themselves.
    """
    terms = Terms(
        from_person_id=_giver(principal, body.from_),
        to_person_id=body.to.removeprefix("user:"),
        group_id=body.group.removeprefix("group:") if body.group else None,
        starts_at=body.starts_at,
        ends_at=body.ends_at,
    )
    row = delegating.give(db, principal, terms)
    return responses.Delegation.of(row)


@delegations.post("/<delegation_id>/accept")
@writes(Nothing, "approvals", once=True, response=responses.Delegation)
def accept(db: Db, principal: Principal, _body: Nothing, delegation_id: str) -> responses.Delegation:
    """Accept a delegation that somebody else gave in the name of the person who is signed in.

    Idempotent.
    """
    row = Delegation.find(db, delegation_id, lock=True)
    row.accept(db, principal)
    return responses.Delegation.of(row)


@delegations.delete("/<delegation_id>")
@writes(Nothing, "approvals or admin", once=True, response=responses.Delegation)
def end(db: Db, principal: Principal, _body: Nothing, delegation_id: str) -> responses.Delegation:
    """End a delegation before its time.

    Both persons and admins may end the delegation. Idempotent.
    """
    row = Delegation.find(db, delegation_id, lock=True)
    if "admin" not in principal.scopes and principal.id not in {row.from_person_id, row.to_person_id}:
        raise NotFound("delegation", delegation_id)
    row.end(db, principal)
    return responses.Delegation.of(row)


def _giver(principal: Principal, named: str | None) -> str:
    """Return the id of the person who delegates. Raises Invalid, Denied."""
    is_person = isinstance(principal, PersonPrincipal)
    if named is None and not is_person:
        raise Invalid("from", "an API key has no decisions of its own to delegate: name the person, such as user:user_...")
    person_id = principal.id if named is None else named.removeprefix("user:")
    if not (is_person and person_id == principal.id) and "admin" not in principal.scopes:
        raise Denied(403, "from: delegating for another person needs the scope 'admin'; leave it out to delegate for yourself.")
    return person_id
