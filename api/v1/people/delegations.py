"""Routes of delegations: a person lets another person decide for a time."""

from typing import Annotated, Literal, Self

from flask import Blueprint
from pydantic import Field

from api.door.errors import Denied
from api.door.examples import IDS
from api.door.paging import Order, Selection, listed
from api.door.requests import Body, GroupName, Moment, Nothing, Paged, PersonName, examples
from api.door.responses import Page, ResponseModel, Time
from api.door.routes import reads, writes
from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Invalid, NotFound
from models.notices import delegating
from models.people.delegation import Delegation as DelegationRow
from models.people.delegation import Terms
from models.people.principal import PersonPrincipal

delegations = Blueprint("delegations", __name__, url_prefix="/v1/delegations")

NEWEST: Order[DelegationRow] = Order("delegations", (DelegationRow.created_at, DelegationRow.id))
_OWN = "(from_person_id = %(me)s OR to_person_id = %(me)s)"
_LIVE = "(ended_at IS NULL AND ends_at > assent_now())"


class DelegationGive(Body):
    """A new delegation."""

    model_config = examples(
        {"to": "user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0", "ends_at": "2026-02-14T18:00:00Z"},
        {
            "from": "user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0",
            "to": "user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D1",
            "group": "group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0",
            "ends_at": "2026-02-14T18:00:00Z",
        },
    )

    from_: PersonName | None = Field(None, alias="from")
    """The person who delegates. Left out: the person who is signed in."""
    to: PersonName
    """The person who decides instead."""
    group: GroupName | None = None
    """The group whose decisions are delegated. Left out: all decisions."""
    starts_at: Annotated[Moment, Field(strict=False)] | None = None
    """Left out: now."""
    ends_at: Annotated[Moment, Field(strict=False)]


class DelegationList(Paged):
    """GET /v1/delegations: the newest first."""

    live: bool | None = None
    """Whether the delegation has not ended."""


_PERSON = f"user:{IDS['user_id']}"


class Delegation(ResponseModel):
    """The right of one person to make the decisions of another person for a time."""

    id: str = Field(examples=[IDS["delegation_id"]])
    type: Literal["delegation"]
    from_: str = Field(alias="from", examples=[_PERSON])
    """The person who delegates the decisions."""
    to: str = Field(examples=[_PERSON])
    """The person who decides instead."""
    group: str | None = Field(examples=[None])
    """The group whose decisions are delegated. Null for all decisions."""
    starts_at: Time
    ends_at: Time
    created_at: Time
    created_by: str = Field(examples=[_PERSON])
    accepted_at: Time | None
    """The time from which the person who delegates agrees. Null if somebody else gave the delegation and that person has not yet
    accepted it: then it gives no right."""
    ended_at: Time | None = Field(examples=[None])
    """The time at which somebody ended the delegation early."""
    ended_by: str | None = Field(examples=[None])

    @classmethod
    def of(cls, row: DelegationRow) -> Self:
        """Return a delegation."""
        return cls.from_row(
            row,
            from_=f"user:{row.from_person_id}",
            to=f"user:{row.to_person_id}",
            group=f"group:{row.group_id}" if row.group_id else None,
        )


@delegations.get("")
@reads(DelegationList, "read or own", response=Page[Delegation])
def index(db: Db, principal: Principal, query: DelegationList) -> Page[Delegation]:
    """List delegations, newest first.

    A person whose role may read only their own approvals gets the delegations from and to themselves.
    """
    matching = Selection(DelegationRow)
    if "read" not in principal.scopes:
        matching = matching.where(_OWN, me=principal.id)
    if query.live is not None:
        matching = matching.where(_LIVE if query.live else f"NOT {_LIVE}")
    return listed(db, matching, NEWEST, query, Delegation.of)


@delegations.post("")
@writes(DelegationGive, "approvals or admin", response=Delegation)
def give(db: Db, principal: Principal, body: DelegationGive) -> Delegation:
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
    return Delegation.of(row)


@delegations.post("/<delegation_id>/accept")
@writes(Nothing, "approvals", once=True, response=Delegation)
def accept(db: Db, principal: Principal, _body: Nothing, delegation_id: str) -> Delegation:
    """Accept a delegation that somebody else gave in the name of the person who is signed in.

    Idempotent.
    """
    row = DelegationRow.find(db, delegation_id, lock=True)
    row.accept(db, principal)
    return Delegation.of(row)


@delegations.delete("/<delegation_id>")
@writes(Nothing, "approvals or admin", once=True, response=Delegation)
def end(db: Db, principal: Principal, _body: Nothing, delegation_id: str) -> Delegation:
    """End a delegation before its time.

    Both persons and admins may end the delegation. Idempotent.
    """
    row = DelegationRow.find(db, delegation_id, lock=True)
    if "admin" not in principal.scopes and principal.id not in {row.from_person_id, row.to_person_id}:
        raise NotFound("delegation", delegation_id)
    row.end(db, principal)
    return Delegation.of(row)


def _giver(principal: Principal, named: str | None) -> str:
    """Return the id of the person who delegates. Raises Invalid, Denied."""
    is_person = isinstance(principal, PersonPrincipal)
    if named is None and not is_person:
        raise Invalid("from", "an API key has no decisions of its own to delegate: name the person, such as user:user_...")
    person_id = principal.id if named is None else named.removeprefix("user:")
    if not (is_person and person_id == principal.id) and "admin" not in principal.scopes:
        raise Denied(403, "from: delegating for another person needs the scope 'admin'; leave it out to delegate for yourself.")
    return person_id
