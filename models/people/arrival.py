"""Arrivals: sign-ins of people for whom an issuer or the proxy vouches. Each arrival updates the person's roles and groups.

A source says who has an account there, and which roles its groups have. A new account is a new person's. The account becomes a
known person's only by a confirmation of that person, in another sign-in: `connect`.
"""

from collections.abc import Mapping
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
    issuer: str
    """The issuer's URL, or `proxy`."""
    subject: str
    email: str
    is_verified: bool
    """True if the source has verified that the e-mail address is the person's."""
    name: str
    groups: frozenset[str]
    address: str | None
    """The client's network address."""


class NotConnected(NotAdmitted):
    """The account is new, and its e-mail address is a person's who has not confirmed the account."""

    def __init__(self, arrival: Arrival, person_id: str) -> None:
        name = arrival.source.name
        super().__init__(
            f"{arrival.email} is known here, and this account of {name} is not connected yet. Sign in as before, by a passkey, "
            f"a password, or a one-time link from an admin. Then press \u201cConnect {name}\u201d on the page of your account."
        )
        self.person_id = person_id


def admit(arrival: Arrival) -> tuple[PersonPrincipal, Role]:
    """Update the person's roles and groups in every workspace. Returns the person as a principal of one of them, and the strongest
    role that the source lets the person use there.

    Raises NotAdmitted for a person without any role, for an address of a domain that the source does not vouch for, and for a new
    account whose e-mail address is not verified; NotConnected for a new account with the e-mail address of a known person.
    """
    source = arrival.source
    if not source.vouches_for(arrival.email):
        raise NotAdmitted(f"{source.name} does not vouch for the address {arrival.email}: its email_domains lack the domain.")
    roles = source.roles_of(arrival.groups)
    with transaction() as db:
        person_id = Identity.find(db, arrival.issuer, arrival.subject)
        if person_id is None:
            _check_new(db, arrival, roles)
        workspaces = _workspaces(db, person_id) if person_id else []
    for workspace_id in sorted({*roles, *workspaces}):
        with transaction(workspace_id) as db:
            person_id = person_id or _create(db, arrival)
            _update(db, arrival, person_id, roles.get(workspace_id))
    for workspace_id in workspaces_of(person_id) if person_id else ():
        limit = source.limit(roles.get(workspace_id))
        if limit is not None:
            with suppress(NotFound), transaction(workspace_id) as db:  # deactivated since
                return replace(Member.find(db, str(person_id)).principal(db), address=arrival.address), limit
    raise NotAdmitted(_NO_ROLE)


def connect(db: Db, issuer: str, subject: str, *, source: str, by: PersonPrincipal) -> None:
    """Store that an account with the person's e-mail address is the person's, who is signed in another way. Idempotent.

    Raises Forbidden in a sign-in with a limit, and by a link that nobody has confirmed; Conflict for another person's account.
    """
    by.check_unlimited()
    if by.makers:
        raise Forbidden("You signed in by a link of somebody else: have yourself confirmed first, as your account page says.")
    known_id = Identity.find(db, issuer, subject)
    if known_id not in {None, by.person_id}:
        raise Conflict(f"This account of {source} belongs to another person.")
    if known_id is None:
        Identity.add(db, issuer, subject, by.person_id)
        acts.record(db, by, "person.account_connected", by.person_id, {"source": Text(source), "subject": Text(subject)})


def person_of(issuer: str, subject: str) -> str | None:
    """Return the id of the person with an account at a source, or None."""
    with transaction() as db:
        return Identity.find(db, issuer, subject)


def workspaces_of(person_id: str) -> list[str]:
    """Return the ids of the workspaces in which a person has a role."""
    with transaction() as db:
        return _workspaces(db, person_id)


def _check_new(db: Db, arrival: Arrival, roles: Mapping[str, Role]) -> None:
    """Raise NotAdmitted for a new account without a role or a verified address; NotConnected for a known person's address."""
    if not arrival.is_verified:
        raise NotAdmitted("The issuer has not verified the e-mail address of this account, which could be somebody else's.")
    known_id = person.find(db, arrival.email)
    if not roles and (known_id is None or arrival.source.limit(None) is None):
        raise NotAdmitted(_NO_ROLE)
    if known_id is not None:
        raise NotConnected(arrival, known_id)


def _create(db: Db, arrival: Arrival) -> str:
    """Create the person of a new account and return the id. Raises NotConnected if somebody has just taken the e-mail address."""
    known_id = person.find(db, arrival.email, lock=True)
    if known_id is None:
        return Person.create(db, arrival.email, arrival.name)
    if Identity.find(db, arrival.issuer, arrival.subject) != known_id:
        raise NotConnected(arrival, known_id)
    return known_id


def _update(db: Db, arrival: Arrival, person_id: str, role: Role | None) -> None:
    """Set the person's role and groups in the transaction's workspace to those that the source gives now.

    A role that an admin gave stays, and so does a deactivation by an admin.
    """
    name = arrival.source.name
    by = Principal("user", person_id, db.workspace_id, address=arrival.address)
    member = db.get(Member, db.workspace_id, person_id, lock=True)
    if member is None or member.source == name:
        if role is not None:
            member = Member.give_role(db, person_id, role, source=name, by=by)
        elif member is not None:
            member.end(db, by=by)
    if member is None:
        return
    if member.deactivated_at is None:
        Group.mirror(db, person_id, name, arrival.source.groups_of(arrival.groups), by=by)
    Identity.add(db, arrival.issuer, arrival.subject, person_id)


def _workspaces(db: Db, person_id: str) -> list[str]:
    return [workspace_id for (workspace_id,) in db.rows("SELECT * FROM assent_workspaces_of(%(id)s)", id=person_id)]


_NO_ROLE = (
    "You are known to your organization's sign-in, but have no role in Assent. Ask an admin for an invitation, or for a group."
)
