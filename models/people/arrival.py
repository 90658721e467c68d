"""Arrivals: sign-ins of people for whom an issuer or the proxy vouches. Each arrival updates the person's roles and groups."""

from dataclasses import dataclass, replace

from models.audit.principal import Principal
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import NotFound, Refusal
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


def admit(arrival: Arrival) -> PersonPrincipal:
    """Update the person's roles and groups in every workspace, and return the person as a principal of one of them.

    Raises NotAdmitted for a person without any role, and for a new account whose e-mail address is not verified.
    """
    roles = arrival.source.roles_of(arrival.groups)
    with transaction() as db:
        person_id = _person_id(db, arrival)
        workspaces = _workspaces(db, person_id) if person_id else []
    if person_id is None and not roles:
        raise NotAdmitted(_NO_ROLE)
    for workspace_id in sorted({*roles, *workspaces}):
        with transaction(workspace_id) as db:
            person_id = person_id or Person.of_email(db, arrival.email, arrival.name)
            _update(db, arrival, person_id, roles.get(workspace_id))
    assert person_id, "a new person has a role"
    with transaction() as db:
        workspaces = _workspaces(db, person_id)
    if not workspaces:
        raise NotAdmitted(_NO_ROLE)
    try:
        with transaction(workspaces[0]) as db:
            return replace(Member.find(db, person_id).principal(db), address=arrival.address)
    except NotFound:  # deactivated since
        raise NotAdmitted(_NO_ROLE) from None


def person_of(issuer: str, subject: str) -> str | None:
    """Return the id of the person with an account at a source, or None."""
    with transaction() as db:
        return _of_account(db, issuer, subject)


def workspaces_of(person_id: str) -> list[str]:
    """Return the ids of the workspaces in which a person has a role."""
    with transaction() as db:
        return _workspaces(db, person_id)


def _of_account(db: Db, issuer: str, subject: str) -> str | None:
    person_id: str | None = db.value("SELECT assent_find_identity(%(issuer)s, %(subject)s)", issuer=issuer, subject=subject)
    return person_id


def _person_id(db: Db, arrival: Arrival) -> str | None:
    """Return the person's id, found by the account, else by the verified e-mail address. None for a new person.

    Raises NotAdmitted for a new account whose e-mail address is not verified.
    """
    person_id = _of_account(db, arrival.issuer, arrival.subject)
    if person_id is not None:
        return person_id
    if not arrival.is_verified:
        raise NotAdmitted("The issuer has not verified the e-mail address of this account, which could be somebody else's.")
    return person.find(db, arrival.email)


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
    if db.get(Identity, arrival.issuer, arrival.subject) is None:
        now = clock.now(db)
        db.insert(Identity(issuer=arrival.issuer, subject=arrival.subject, person_id=person_id, created_at=now))


def _workspaces(db: Db, person_id: str) -> list[str]:
    return [workspace_id for (workspace_id,) in db.rows("SELECT * FROM assent_workspaces_of(%(id)s)", id=person_id)]


_NO_ROLE = (
    "You are known to your organization's sign-in, but have no role in Assent. Ask an admin for an invitation, or for a group."
)
