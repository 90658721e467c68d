"""Arrivals: sign-ins of people for whom an issuer or the proxy vouches. Each arrival updates the person's roles and groups.

A source says who has an account there, and which roles its groups have. A new account is a new person's. The account becomes a
known person's only by a confirmation of that person, in another sign-in: `connect`.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict, Forbidden, NotFound, Refusal
from models.people import person
from models.people.group import Group
from models.people.issuer import Source
from models.people.member import Member
from models.people.person import Identity, Person
from models.people.principal import PersonPrincipal
from models.people.roles import Role


class NotAdmitted(Refusal):
    """The source vouches for the person, and the person has no role here."""


@dataclass(frozen=True)
class Arrival:
    """A source's statement about a person."""

    source: Source
    subject: str
    email: str
    is_verified: bool
    """True if the source has verified that the e-mail address is the person's."""
    name: str
    groups: frozenset[str]
    address: str | None
    """The client's network address."""

    @property
    def issuer(self) -> str:
        """The source as `Identity.issuer` names it."""
        return self.source.issuer


class NotConnected(NotAdmitted):
    """The account is new in a workspace, and its e-mail address is a person's there who has not confirmed the account."""

    def __init__(self, arrival: Arrival) -> None:
        name = arrival.source.name
        super().__init__(
            f"The address {arrival.email} is known here, and this account of {name} is not connected yet. Sign in as before, by "
            f"a passkey, a password, or a one-time link from an admin. "
            f"Then press \u201cConnect {name}\u201d on the page of your account."
        )


def admit(arrival: Arrival) -> tuple[PersonPrincipal, Role]:
    """Update the person's roles and groups in every workspace. Returns the person as a principal of one of them, and the strongest
    role that the source lets the person use there.

    Raises NotAdmitted for a person without any role, for an address of a domain that the source does not vouch for, and for a new
    account whose e-mail address is not verified; NotConnected for a new account with the e-mail address of a known person.
    """
    source = arrival.source
    if not source.vouches_for(arrival.email):
        raise NotAdmitted(
            f"The source {source.name} does not vouch for the address {arrival.email}: add the domain to its email_domains."
        )
    roles = source.roles_of(arrival.groups)
    with transaction() as db:
        people = Identity.everywhere(db, arrival.issuer, arrival.subject)
        homes = person.everywhere(db, arrival.email) if arrival.is_verified and source.direct_roles_up_to else {}
    refusal = NotAdmitted(_NO_ROLE)
    for workspace_id in sorted({*roles, *people, *homes}):
        try:
            with transaction(workspace_id) as db:
                person_id = people.get(workspace_id) or _create(db, arrival)
                _update(db, arrival, person_id, roles.get(workspace_id))
                people[workspace_id] = person_id
        except NotAdmitted as error:
            refusal = error
    for workspace_id, person_id in sorted(people.items()):
        limit = source.limit(roles.get(workspace_id))
        if limit is not None:
            with suppress(NotFound), transaction(workspace_id) as db:  # deactivated since
                return replace(Member.find(db, person_id).principal(db), address=arrival.address), limit
    raise refusal


def connectable(arrival: Arrival, to: PersonPrincipal) -> bool:
    """True if a signed-in person may connect the account: it has their e-mail address, is nobody's in the workspace, and lets the
    person sign in there."""
    source = arrival.source
    limit = source.limit(source.roles_of(arrival.groups).get(to.workspace_id))
    if limit is None or not (arrival.is_verified and source.vouches_for(arrival.email)):
        return False
    with transaction(to.workspace_id) as db:
        known_id = Identity.find(db, arrival.issuer, arrival.subject)
        return known_id is None and db.get_one(Person, to.person_id).email == arrival.email


def connect(db: Db, issuer: str, subject: str, *, source: str, by: PersonPrincipal) -> None:
    """Store that an account with the person's e-mail address is the person's, who is signed in another way. Idempotent.

    Raises Forbidden in a sign-in with a limit, and by a link that nobody has confirmed; Conflict for another person's account.
    """
    by.check_unlimited()
    if by.makers:
        raise Forbidden(
            "You signed in by a link that somebody else made: ask to be confirmed first, as your account page explains."
        )
    known_id = Identity.find(db, issuer, subject)
    if known_id not in {None, by.person_id}:
        raise Conflict(f"This account of {source} belongs to another person.")
    if known_id is None:
        Identity.add(db, issuer, subject, by.person_id)
        acts.record(
            db, by, "person.account_connected", by.person_id, {"source": Text(source), "subject": Text(subject, about=by.person_id)}
        )


def _create(db: Db, arrival: Arrival) -> str:
    """Create the person of an account that is new in the transaction's workspace, and return the id.

    Raises NotAdmitted for an e-mail address that is not verified; NotConnected for the address of a person of the workspace.
    """
    if not arrival.is_verified:
        raise NotAdmitted("The issuer has not verified the e-mail address of this account, which could be somebody else's.")
    known_id = person.find(db, arrival.email, lock=True)
    if known_id is None:
        return Person.create(db, arrival.email, arrival.name)
    if Identity.find(db, arrival.issuer, arrival.subject) != known_id:
        raise NotConnected(arrival)
    return known_id


def _update(db: Db, arrival: Arrival, person_id: str, role: Role | None) -> None:
    """Set the person's role and groups in the transaction's workspace to those that the source gives now.

    A role that an admin gave stays, and so does a deactivation by an admin. The last admin stays an admin.
    """
    name = arrival.source.name
    by = Principal("user", person_id, db.workspace_id, address=arrival.address)
    keeps_admin = Member.keeps_admin(db, person_id, role, source=name)
    member = db.get(Member, db.workspace_id, person_id, lock=True)
    if member is not None and keeps_admin:
        member.keep_admin(db, role, by=by)
    elif member is None or member.source == name:
        if role is not None:
            member = Member.give_role(db, person_id, role, source=name, by=by)
        elif member is not None:
            member.end(db, by=by)
    if member is None:
        return
    if db.get_one(Person, person_id, lock=True).erased_at is not None:
        raise NotAdmitted(_NO_ROLE)
    if member.deactivated_at is None:
        Group.mirror(db, person_id, name, arrival.source.groups_of(arrival.groups), by=by)
    Identity.add(db, arrival.issuer, arrival.subject, person_id)


_NO_ROLE = (
    "You are known to your organization's sign-in, but have no role in Assent. Ask an admin for an invitation, or for a group."
)
