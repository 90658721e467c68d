"""A person's queue: the pending approvals that wait for the person's vote, those with the oldest deadline first."""

from typing import Any

from api.errors import Denied
from api.paging import Order, Wanted
from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.errors import Invalid
from models.people.delegation import Right, rights_of
from models.people.principal import PersonPrincipal
from models.pure.quorum import Quorum
from models.session.approval import Approval

OLDEST_DEADLINE: Order[Approval] = Order(
    "queue", (Approval.expires_at, Approval.id), lambda a: (a.expires_at, a.id), descending=False
)
_NOT_VOTED = "NOT EXISTS (SELECT FROM vote v WHERE v.approval_id = approval.id AND v.person_id = %(voter)s AND v.voided_at IS NULL)"
_NOT_USED = (
    "NOT EXISTS (SELECT FROM vote v WHERE v.approval_id = approval.id AND v.for_person_id = %({right})s AND v.voided_at IS NULL)"
)
_FOUR_EYES = "(coalesce((quorum ->> 'four_eyes')::boolean, false) AND %({who})s = ANY(started_by))"
_ADMITS = """
    NOT EXISTS (
        SELECT FROM jsonb_array_elements(coalesce(quorum -> 'approvers', '[]')) one WHERE NOT one ?| %({names})s
    )
"""
_NAMED = "jsonb_array_length(coalesce(quorum -> 'approvers', '[]')) > 0"


def person_of(principal: Principal, named: str) -> str:
    """The id of the person whose queue is asked for: `me`, or `user_...`. Raises Invalid, Denied."""
    if isinstance(principal, PersonPrincipal):
        if named not in {"me", principal.person_id} and "admin" not in principal.scopes:
            raise Denied(403, "for: another person's queue is for admins and API keys; ask for your own with for=me.")
        return principal.person_id if named == "me" else named
    if named == "me":
        raise Invalid("for", "me is the person who is signed in, and an API key is none: name a person, such as user_...")
    return named


def waiting_for(db: Db, person_id: str) -> Wanted[Approval]:
    """The approvals that the person may decide and has not voted on, by their own right or by one that was delegated to them."""
    rights = rights_of(db, person_id, clock.now(db), lock=False)
    waiting = Wanted(Approval).where("workspace_id = %(workspace)s AND status = 'pending'", workspace=db.workspace_id)
    waiting = waiting.where(_NOT_VOTED, voter=person_id).where(f"NOT {_FOUR_EYES.format(who='voter')}")
    conditions = ["false"]
    values: dict[str, Any] = {}
    for number, right in enumerate(rights):
        condition, more = _condition(right, number)
        conditions.append(condition)
        values |= more
    return waiting.where("(" + " OR ".join(conditions) + ")", **values)


def is_own(db: Db, principal: Principal, approval: Approval) -> bool:
    """True if the principal is a person who may decide the approval, or could have, four eyes apart."""
    rights = rights_of(db, principal.id, clock.now(db), lock=False)
    return any(right.meets(Quorum.of(approval.quorum)) for right in rights)


def before(db: Db, waiting: Wanted[Approval], first: Approval) -> int:
    """How many approvals of the queue come before this one."""
    earlier = waiting.where(
        "(expires_at, id) < (%(first_expires_at)s, %(first_id)s)", first_expires_at=first.expires_at, first_id=first.id
    )
    return earlier.count(db)


def _condition(right: Right, number: int) -> tuple[str, dict[str, Any]]:
    """In SQL: the right is one that the quorum counts, and nobody has used it."""
    names, who = f"names_{number}", f"right_{number}"
    parts = [_ADMITS.format(names=names), _NOT_USED.format(right=who), f"NOT {_FOUR_EYES.format(who=who)}"]
    parts += [_NAMED] if right.group_alone else []
    return "(" + " AND ".join(parts) + ")", {names: sorted(right.names), who: right.person_id}
